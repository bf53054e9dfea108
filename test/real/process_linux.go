package real

import "syscall"

// dieWithParent makes the kernel end a program when the test that started it
// dies, so that nothing is left behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
