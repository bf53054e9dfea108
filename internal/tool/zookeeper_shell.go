package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
)

// zookeeperShellCommand is zookeeper-shell
// (org.apache.zookeeper.ZooKeeperMain, as Kafka ships it).
func zookeeperShellCommand() *Command {
	return &Command{
		Name: "zookeeper-shell", Script: "zookeeper-shell", Short: "Look at and change ZooKeeper's nodes",
		Purpose: "This tool runs one command on a ZooKeeper server, or those that standard input holds.",
		Long:    "barnabas zookeeper-shell host:port[/chroot] [command]\n\nCommands:\n" + shellHelp(),
		Example: []string{"barnabas zookeeper-shell localhost:2181 ls /brokers/ids", "barnabas zookeeper-shell localhost:2181 get /controller"},
		Options: []Option{
			{Name: "server", Arg: "host:port", Text: "The server, if it is not the first argument."},
			{Name: "timeout", Arg: "milliseconds", Default: "30000", Text: "The session's timeout."},
			{Name: "zk-tls-config-file", Arg: "file", Text: "ZooKeeper client TLS properties."},
		},
		OwnArgs: true,
		Words: func(_ context.Context, _ *Command, before []string) []string {
			if options, command := shellArgs(before); options["server"] != "" && len(command) == 0 {
				return sortedKeys(shellCommands)
			}
			return nil
		},
		Run: runZooKeeperShell,
	}
}

// shell is a session at the server.
type shell struct {
	call    *Call
	server  string // where it connects to
	zk      *zookeeper.Client
	chroot  string // before the paths of zk
	watches *shellWatches
	closed  bool // zk is
	history []string
	screen  io.Writer // where events of watches go
	quiet   atomic.Bool
	events  sync.WaitGroup // what shows them, until zk is closed
	flush   chan chan struct{}
	options map[string]string
}

// shellCommand is one of the shell's commands.
type shellCommand struct {
	usage string
	flags string // those that it takes; one before ':' takes a value
	least int    // number of arguments
	one   bool   // no two flags at once
	alone bool   // needs no server
	run   func(*shell, map[string]string, []string) error
}

// errQuit ends the shell.
var errQuit = errors.New("tool: quit")

var shellCommands map[string]shellCommand

func init() {
	shellCommands = map[string]shellCommand{
		"addWatch":             {usage: "addWatch [-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE", flags: "m:", least: 1, run: (*shell).addWatch},
		"addauth":              {usage: "addauth scheme auth", least: 1, run: (*shell).addAuth},
		"close":                {usage: "close ", run: (*shell).close},
		"config":               {usage: "config [-c] [-w] [-s]", flags: "c w s", run: (*shell).config},
		"connect":              {usage: "connect host:port", alone: true, run: (*shell).connect},
		"create":               {usage: "create [-s] [-e] [-c] [-t ttl] path [data] [acl]", flags: "s e c t:", least: 1, run: (*shell).create},
		"delete":               {usage: "delete [-v version] path", flags: "v:", least: 1, run: (*shell).delete},
		"deleteall":            {usage: "deleteall path [-b batch size]", flags: "b:", least: 1, run: (*shell).deleteAll},
		"delquota":             {usage: "delquota [-n|-b|-N|-B] path", flags: "n b N B", least: 1, one: true, run: (*shell).delQuota},
		"get":                  {usage: "get [-s] [-w] path", flags: "s w", least: 1, run: (*shell).get},
		"getAcl":               {usage: "getAcl [-s] path", flags: "s", least: 1, run: (*shell).getACL},
		"getAllChildrenNumber": {usage: "getAllChildrenNumber path", least: 1, run: (*shell).countAll},
		"getEphemerals":        {usage: "getEphemerals path", run: (*shell).getEphemerals},
		"history":              {usage: "history ", alone: true, run: (*shell).showHistory},
		"listquota":            {usage: "listquota path", least: 1, run: (*shell).listQuota},
		"ls":                   {usage: "ls [-s] [-w] [-R] path", flags: "s w R", least: 1, run: (*shell).ls},
		"printwatches":         {usage: "printwatches on|off", alone: true, run: (*shell).printWatches},
		"quit":                 {usage: "quit ", alone: true, run: func(*shell, map[string]string, []string) error { return errQuit }},
		"reconfig": {usage: "reconfig [-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | [-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]",
			flags: "s v: file: members: add: remove:", run: (*shell).reconfig},
		"redo":          {usage: "redo cmdno", alone: true, run: (*shell).redo},
		"removewatches": {usage: "removewatches path [-c|-d|-a] [-l]", flags: "c d a l", least: 1, run: (*shell).removeWatches},
		"set":           {usage: "set [-s] [-v version] path data", flags: "s v:", least: 2, run: (*shell).set},
		"setAcl":        {usage: "setAcl [-s] [-v version] [-R] path acl", flags: "s v: R", least: 2, run: (*shell).setACL},
		"setquota":      {usage: "setquota -n|-b|-N|-B val path", flags: "n: b: N: B:", least: 1, one: true, run: (*shell).setQuota},
		"stat":          {usage: "stat [-w] path", flags: "w", least: 1, run: (*shell).stat},
		"sync":          {usage: "sync path", least: 1, run: (*shell).sync},
		"version":       {usage: "version ", run: (*shell).version},
		"whoami":        {usage: "whoami ", run: (*shell).whoAmI},
	}
}

func shellHelp() string {
	var b strings.Builder
	for _, name := range sortedKeys(shellCommands) {
		b.WriteString("\t" + shellCommands[name].usage + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shellArgs takes the shell's own options, by name, off a command line; the
// first that is none is the server, and the rest is the command.
func shellArgs(raw []string) (options map[string]string, command []string) {
	options = map[string]string{}
	for i := 0; i < len(raw); i++ {
		name := strings.TrimLeft(raw[i], "-")
		switch {
		case strings.HasPrefix(raw[i], "-") && slices.Contains([]string{"server", "timeout", "zk-tls-config-file", "output"}, name) && i+1 < len(raw):
			i++
			options[name] = raw[i]
		case options["server"] == "":
			options["server"] = raw[i]
		default:
			return options, raw[i:]
		}
	}
	return options, nil
}

func runZooKeeperShell(c *Call) error {
	options, command := shellArgs(c.raw)
	server := options["server"]
	switch {
	case server == "":
		return usage("USAGE: zookeeper-shell zookeeper_host:port[/path] [-zk-tls-config-file file] [args...]")
	case options["output"] == "json":
		c.JSON = true
	}
	s := &shell{call: c, screen: c.Out, options: options}
	if !c.JSON {
		fmt.Fprintln(c.Out, "Connecting to "+server)
	}
	if len(command) == 0 && !c.JSON {
		fmt.Fprintln(c.Out, "Welcome to ZooKeeper!")
		if c.Keyboard == nil {
			fmt.Fprintln(c.Out, "JLine support is disabled")
		}
	}
	read := plainLines(c.In)
	if len(command) == 0 && c.Keyboard != nil {
		read = s.editedLines()
	}
	if err := s.open(server); err != nil {
		return err
	}
	defer s.end()
	if len(command) == 0 {
		return s.loop(read)
	}
	err := s.do(command)
	if c.JSON && !errors.Is(err, errQuit) {
		return err // it becomes a document
	}
	return s.exit(err)
}

// open begins a session at a server, host:port[,...][/chroot].
func (s *shell) open(server string) error {
	timeout, err := strconv.Atoi(s.options["timeout"])
	if err != nil || timeout < 1 {
		timeout = 30000
	}
	to, err := zookeeperOptions(server, s.options["zk-tls-config-file"])
	if err != nil {
		return err
	}
	to.SessionTimeout = time.Duration(timeout) * time.Millisecond
	zk, err := zookeeper.New(to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.call.Context, patience)
	defer cancel()
	if err := zk.Start(ctx); err != nil {
		zk.Close()
		return err
	}
	s.chroot = ""
	if at := strings.IndexByte(server, '/'); at >= 0 {
		s.chroot = strings.TrimSuffix(server[at:], "/")
	}
	watches := newShellWatches()
	s.server, s.zk, s.watches, s.closed = server, zk, watches, false
	s.show("SyncConnected", "None", "")
	flush, chroot := make(chan chan struct{}), s.chroot
	s.flush = flush
	s.events.Go(func() { s.showEvents(zk, watches, chroot, flush) })
	return nil
}

// ask makes a request that zookeeper.Client has no call for. response may be nil.
func (s *shell) ask(op jute.Op, request, response jute.Record) error {
	_, err := s.zk.Do(s.call.Context, zookeeper.RawOp(op, request, response))
	return err
}

// end ends the session; false: it had ended.
func (s *shell) end() bool {
	if s.closed {
		return false
	}
	s.zk.Close() // ends its events
	s.events.Wait()
	s.closed = true
	return true
}

// loop carries out lines until they end. Its exit status is that of the last
// before quit.
func (s *shell) loop(read lines) error {
	var last error
	for s.call.Context.Err() == nil {
		state := "CONNECTED"
		switch {
		case s.closed:
			state = "CLOSED"
		case !s.zk.Connected():
			state = "CONNECTING"
		}
		line, err := read(fmt.Sprintf("[zk: %s(%s) %d] ", s.server, state, len(s.history)))
		if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
			return last
		}
		if err != nil {
			return err
		}
		err = s.run(line)
		if errors.Is(err, errQuit) {
			_ = s.close(nil, nil) // has no error
			return last
		}
		last = s.exit(err)
	}
	return nil
}

// show writes an event.
func (s *shell) show(state, kind, path string) {
	if s.call.JSON || s.quiet.Load() {
		return
	}
	if path == "" {
		path = "null"
	}
	fmt.Fprintf(s.screen, "\nWATCHER::\n\nWatchedEvent state:%s type:%s path:%s\n", state, kind, path)
}

// seen waits until the events that have come are shown.
func (s *shell) seen() {
	if !s.closed {
		done := make(chan struct{})
		s.flush <- done
		<-done
	}
}

// showEvents writes what watches see, until the client is closed. The first
// event, that of the connection, has been written.
func (s *shell) showEvents(zk *zookeeper.Client, watches *shellWatches, chroot string, flush <-chan chan struct{}) {
	first := true
	show := func(e zookeeper.Event) {
		switch {
		case e.State == jute.StateExpired:
			watches.forget()
			s.events.Go(func() { _ = zk.Renew(s.call.Context) }) // fails only when the shell ends
		case e.Type != jute.EventNone && !watches.fired(e.Type, zookeeper.AddChroot(chroot, e.Path)):
			return // of a watch that was removed
		}
		if !first {
			s.show(stateNames[e.State], eventNames[e.Type], e.Path)
		}
		first = false
	}
	for {
		select {
		case e, ok := <-zk.Events():
			if !ok {
				return
			}
			show(e)
		case done := <-flush:
			for range len(zk.Events()) {
				show(<-zk.Events())
			}
			close(done)
		}
	}
}

var (
	stateNames = map[jute.KeeperState]string{jute.StateSyncConnected: "SyncConnected", jute.StateDisconnected: "Disconnected", jute.StateExpired: "Expired", jute.StateAuthFailed: "AuthFailed"}
	eventNames = map[jute.EventType]string{jute.EventNone: "None", jute.EventNodeCreated: "NodeCreated", jute.EventNodeDeleted: "NodeDeleted",
		jute.EventNodeDataChanged: "NodeDataChanged", jute.EventNodeChildrenChanged: "NodeChildrenChanged"}
)

// run carries out one line and remembers it.
func (s *shell) run(line string) error {
	words := splitWords(line)
	if len(words) == 0 {
		return nil
	}
	s.history = append(s.history, line)
	return s.do(words)
}

// exit says what went wrong, and is the exit status of a single command.
func (s *shell) exit(err error) error {
	var bad *ExitError
	switch {
	case err == nil, errors.Is(err, errQuit):
		return nil
	case errors.As(err, &bad), errors.Is(err, ErrReported):
		return err
	}
	fmt.Fprintln(s.call.Err, err)
	return ErrReported
}
