// Package controller tests internal/controller in one process with several
// brokers, on Apache ZooKeeper and on the embedded server: the same cases on
// both. The brokers are fakes that keep what the controller tells them.
package controller
