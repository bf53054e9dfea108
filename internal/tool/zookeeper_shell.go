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
		Run:     runZooKeeperShell,
	}
}

// shell is a session at the server.
type shell struct {
	call    *Call
	zk      *zookeeper.Client
	history []string
	screen  io.Writer // where events of watches go
}

// shellCommand is one of the shell's commands.
type shellCommand struct {
	usage string
	flags string // letters that it takes; a letter before ':' takes a value
	least int    // number of arguments
	run   func(*shell, map[byte]string, []string) error
}

// errQuit ends the shell.
var errQuit = errors.New("tool: quit")

var shellCommands map[string]shellCommand

func init() {
	shellCommands = map[string]shellCommand{
		"ls":                   {"ls [-s] [-w] [-R] path", "swR", 1, (*shell).ls},
		"get":                  {"get [-s] [-w] path", "sw", 1, (*shell).get},
		"stat":                 {"stat [-w] path", "w", 1, (*shell).stat},
		"create":               {"create [-s] [-e] path [data] [acl]", "se", 1, (*shell).create},
		"set":                  {"set [-s] [-v version] path data", "sv:", 2, (*shell).set},
		"delete":               {"delete [-v version] path", "v:", 1, (*shell).delete},
		"deleteall":            {"deleteall path", "", 1, (*shell).deleteAll},
		"getAcl":               {"getAcl [-s] path", "s", 1, (*shell).getACL},
		"getAllChildrenNumber": {"getAllChildrenNumber path", "", 1, (*shell).countAll},
		"sync":                 {"sync path", "", 1, (*shell).sync},
		"history":              {"history ", "", 0, (*shell).showHistory},
		"version":              {"version ", "", 0, (*shell).version},
		"redo":                 {"redo cmdno", "", 1, (*shell).redo},
		"setAcl":               {"setAcl [-s] [-v version] path acl", "sv:", 2, (*shell).setACL},
		"config":               {"config [-w]", "w", 0, (*shell).config},
		"quit":                 {"quit ", "", 0, func(*shell, map[byte]string, []string) error { return errQuit }},
		"close":                {"close ", "", 0, func(*shell, map[byte]string, []string) error { return errQuit }},
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
	timeout, err := strconv.Atoi(options["timeout"])
	if err != nil || timeout < 1 {
		timeout = 30000
	}
	to, err := zookeeperOptions(server, options["zk-tls-config-file"])
	if err != nil {
		return err
	}
	to.SessionTimeout = time.Duration(timeout) * time.Millisecond
	zk, err := zookeeper.New(to)
	if err != nil {
		return err
	}
	defer zk.Close()
	if !c.JSON {
		fmt.Fprintln(c.Out, "Connecting to "+server)
	}
	s := &shell{call: c, zk: zk}
	if len(command) == 0 {
		fmt.Fprintln(c.Out, "Welcome to ZooKeeper!")
		if c.Keyboard == nil {
			fmt.Fprintln(c.Out, "JLine support is disabled")
		}
	}
	ctx, cancel := context.WithTimeout(c.Context, patience)
	defer cancel()
	if err := zk.Start(ctx); err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprint(c.Out, "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null\n")
	}
	if len(command) > 0 {
		return s.exit(s.do(command))
	}
	return s.loop(server)
}

// loop carries out lines until they end.
func (s *shell) loop(server string) error {
	s.screen = s.call.Out
	read := plainLines(s.call.In)
	if s.call.Keyboard != nil {
		read = s.editedLines()
	}
	var events sync.WaitGroup
	events.Go(s.showEvents)
	defer events.Wait()
	defer s.zk.Close() // ends the events
	for s.call.Context.Err() == nil {
		state := "CONNECTED"
		if !s.zk.Connected() {
			state = "CONNECTING"
		}
		line, err := read(fmt.Sprintf("[zk: %s(%s) %d] ", server, state, len(s.history)))
		if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.run(line); errors.Is(err, errQuit) {
			return nil
		} else {
			_ = s.exit(err) // said, and the shell goes on
		}
	}
	return nil
}

// showEvents writes what watches see, until the client is closed. The first
// event, that of the connection, has been written.
func (s *shell) showEvents() {
	first := true
	for e := range s.zk.Events() {
		if e.State == jute.StateExpired {
			_ = s.zk.Renew(s.call.Context) // fails only when the shell ends
		}
		path := e.Path
		if path == "" {
			path = "null"
		}
		if !first {
			fmt.Fprintf(s.screen, "\nWATCHER::\n\nWatchedEvent state:%s type:%s path:%s\n", stateNames[e.State], eventNames[e.Type], path)
		}
		first = false
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
	case errors.As(err, &bad):
		return err
	}
	fmt.Fprintln(s.call.Err, err)
	return ErrReported
}

// splitWords splits a line at blanks, save in quotes.
func splitWords(line string) (words []string) {
	var word strings.Builder
	quote, begun := byte(0), false
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

func (s *shell) do(words []string) error {
	c, ok := shellCommands[words[0]]
	if !ok {
		if words[0] != "help" {
			fmt.Fprintf(s.call.Err, "Command not found: %s\n", words[0])
		}
		fmt.Fprintf(s.call.Err, "ZooKeeper -server host:port [-zk-tls-config-file <file>] cmd args\n%s\n", shellHelp())
		return &ExitError{127}
	}
	flags, rest := map[byte]string{}, []string{}
	for i := 1; i < len(words); i++ {
		w := words[i]
		if len(w) < 2 || w[0] != '-' || len(rest) > 0 {
			rest = append(rest, w)
			continue
		}
		at := strings.IndexByte(c.flags, w[1])
		if at < 0 || len(w) > 2 {
			return says("Unrecognized option: %s", w)
		}
		flags[w[1]] = ""
		if strings.HasPrefix(c.flags[at+1:], ":") {
			if i+1 == len(words) {
				return says("Missing argument for option: %s", w[1:])
			}
			i++
			flags[w[1]] = words[i]
		}
	}
	if len(rest) < c.least {
		return says("%s", c.usage)
	}
	return s.named(c.run(s, flags, rest), rest)
}

// named gives ZooKeeper's errors the words of its shell.
func (s *shell) named(err error, rest []string) error {
	path := strings.Join(rest[:min(1, len(rest))], "")
	switch {
	case errors.Is(err, jute.ErrNoNode):
		return says("Node does not exist: %s", path)
	case errors.Is(err, jute.ErrNodeExists):
		return says("Node already exists: %s", path)
	case errors.Is(err, jute.ErrNotEmpty):
		return says("Node not empty: %s", path)
	case errors.Is(err, jute.ErrBadVersion):
		return says("version No is not valid : %s", path)
	case errors.Is(err, jute.ErrNoAuth):
		return says("Insufficient permission : %s", path)
	}
	if err == nil || errors.Is(err, errQuit) {
		return err
	}
	if zookeeper.ValidatePath(path) != nil {
		return says("Path must start with / character: %s", path)
	}
	return err
}

func (s *shell) print(line string) { fmt.Fprintln(s.call.Out, line) }

func (s *shell) printStat(st jute.Stat) {
	when := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("Mon Jan 02 15:04:05 UTC 2006") }
	fmt.Fprintf(s.call.Out, "cZxid = 0x%x\nctime = %s\nmZxid = 0x%x\nmtime = %s\npZxid = 0x%x\ncversion = %d\ndataVersion = %d\naclVersion = %d\nephemeralOwner = 0x%x\ndataLength = %d\nnumChildren = %d\n",
		st.Czxid, when(st.Ctime), st.Mzxid, when(st.Mtime), st.Pzxid, st.Cversion, st.Version, st.Aversion, uint64(st.EphemeralOwner), st.DataLength, st.NumChildren)
}

func (s *shell) ls(flags map[byte]string, args []string) error {
	ctx := s.call.Context
	if _, deep := flags['R']; deep {
		return s.walk(args[0], s.print)
	}
	list := s.zk.Children
	if _, watch := flags['w']; watch {
		list = s.zk.ChildrenW
	}
	children, stat, err := list(ctx, args[0])
	if err != nil {
		return err
	}
	slices.Sort(children)
	if s.call.JSON {
		return s.call.printJSON(map[string]any{"path": args[0], "children": append([]string{}, children...)})
	}
	s.print("[" + strings.Join(children, ", ") + "]")
	if _, ok := flags['s']; ok {
		s.printStat(stat)
	}
	return nil
}

// walk visits a tree level by level, as ZooKeeper's ZKUtil does.
func (s *shell) walk(root string, visit func(path string)) error {
	queue := []string{root}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		children, _, err := s.zk.Children(s.call.Context, path)
		if err != nil {
			if path != root && errors.Is(err, jute.ErrNoNode) {
				continue
			}
			return err
		}
		visit(path)
		slices.Sort(children)
		for _, child := range children {
			queue = append(queue, strings.TrimSuffix(path, "/")+"/"+child)
		}
	}
	return nil
}

func (s *shell) get(flags map[byte]string, args []string) error {
	read := s.zk.Get
	if _, watch := flags['w']; watch {
		read = s.zk.GetW
	}
	data, stat, err := read(s.call.Context, args[0])
	if err != nil {
		return err
	}
	if s.call.JSON {
		return s.call.printJSON(map[string]any{"path": args[0], "data": string(data), "version": stat.Version})
	}
	if data == nil {
		s.print("null")
	} else {
		s.print(string(data))
	}
	if _, ok := flags['s']; ok {
		s.printStat(stat)
	}
	return nil
}

func (s *shell) stat(flags map[byte]string, args []string) error {
	look := s.zk.Exists
	if _, watch := flags['w']; watch {
		look = s.zk.ExistsW
	}
	stat, exists, err := look(s.call.Context, args[0])
	if err != nil {
		return err
	}
	if !exists {
		return jute.ErrNoNode
	}
	if s.call.JSON {
		return s.call.printJSON(map[string]any{"path": args[0], "version": stat.Version, "czxid": stat.Czxid, "mzxid": stat.Mzxid, "ctime": stat.Ctime, "mtime": stat.Mtime,
			"dataLength": stat.DataLength, "numChildren": stat.NumChildren, "ephemeralOwner": fmt.Sprintf("0x%x", uint64(stat.EphemeralOwner))})
	}
	s.printStat(stat)
	return nil
}

func (s *shell) create(flags map[byte]string, args []string) error {
	_, sequential := flags['s']
	_, ephemeral := flags['e']
	mode := zookeeper.Persistent
	switch {
	case sequential && ephemeral:
		mode = zookeeper.EphemeralSequential
	case sequential:
		mode = zookeeper.PersistentSequential
	case ephemeral:
		mode = zookeeper.Ephemeral
	}
	var data []byte
	if len(args) > 1 {
		data = []byte(args[1])
	}
	var acl []jute.ACL
	if len(args) > 2 {
		var err error
		if acl, err = parseACL(args[2]); err != nil {
			return err
		}
	}
	path, _, err := s.zk.Create(s.call.Context, args[0], data, mode, acl...)
	if err == nil {
		fmt.Fprintln(s.call.Err, "Created "+path)
	}
	return err
}

func version(flags map[byte]string) (int32, error) {
	v, ok := flags['v']
	if !ok {
		return zookeeper.AnyVersion, nil
	}
	return atoi(v)
}

func (s *shell) set(flags map[byte]string, args []string) error {
	v, err := version(flags)
	if err != nil {
		return err
	}
	stat, err := s.zk.Set(s.call.Context, args[0], []byte(args[1]), v)
	if _, ok := flags['s']; ok && err == nil {
		s.printStat(stat)
	}
	return err
}

func (s *shell) delete(flags map[byte]string, args []string) error {
	v, err := version(flags)
	if err != nil {
		return err
	}
	return s.zk.Delete(s.call.Context, args[0], v)
}

func (s *shell) deleteAll(_ map[byte]string, args []string) error {
	if _, exists, err := s.zk.Exists(s.call.Context, args[0]); err != nil || !exists {
		return errors.Join(err, jute.ErrNoNode)
	}
	if err := s.call.confirm("This deletes " + args[0] + " and all below."); err != nil {
		return err
	}
	return deleteTree(s.call.Context, s.zk, args[0])
}

func (s *shell) getACL(flags map[byte]string, args []string) error {
	list, stat, err := s.zk.GetACL(s.call.Context, args[0])
	if err != nil {
		return err
	}
	if s.call.JSON {
		return s.call.printJSON(map[string]any{"path": args[0], "acl": list})
	}
	for _, a := range list {
		rights := ""
		for i, letter := range "rwcda" {
			if a.Perms&(1<<i) != 0 {
				rights += string(letter)
			}
		}
		ordered := ""
		for _, letter := range "cdrwa" { // the order of ZooKeeper's shell
			if strings.ContainsRune(rights, letter) {
				ordered += string(letter)
			}
		}
		fmt.Fprintf(s.call.Out, "'%s,'%s\n: %s\n", a.ID.Scheme, a.ID.ID, ordered)
	}
	if _, ok := flags['s']; ok {
		s.printStat(stat)
	}
	return nil
}

// parseACL reads scheme:id:rights, several of them with commas between
// (org.apache.zookeeper.cli.AclParser).
func parseACL(text string) (list []jute.ACL, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last := strings.IndexByte(part, ':'), strings.LastIndexByte(part, ':')
		if first < 0 || first == last {
			return nil, says("%s does not have the form scheme:id:perm", part)
		}
		a := jute.ACL{ID: jute.ID{Scheme: part[:first], ID: part[first+1 : last]}}
		for _, letter := range part[last+1:] {
			i := strings.IndexRune("rwcda", letter)
			if i < 0 {
				return nil, says("Unknown perm type: %c", letter)
			}
			a.Perms |= 1 << i
		}
		list = append(list, a)
	}
	return list, nil
}

func (s *shell) setACL(flags map[byte]string, args []string) error {
	v, err := version(flags)
	if err != nil {
		return err
	}
	acl, err := parseACL(args[1])
	if err != nil {
		return err
	}
	stat, err := s.zk.SetACL(s.call.Context, args[0], acl, v)
	if _, ok := flags['s']; ok && err == nil {
		s.printStat(stat)
	}
	return err
}

func (s *shell) config(flags map[byte]string, _ []string) error {
	return s.get(flags, []string{"/zookeeper/config"})
}

func (s *shell) countAll(_ map[byte]string, args []string) error {
	n := -1
	if err := s.walk(args[0], func(string) { n++ }); err != nil {
		return err
	}
	s.print(strconv.Itoa(n))
	return nil
}

func (s *shell) sync(_ map[byte]string, args []string) error {
	if err := s.zk.Sync(s.call.Context, args[0]); err != nil {
		return err
	}
	s.print("Sync is OK")
	return nil
}

func (s *shell) showHistory(map[byte]string, []string) error {
	for i, line := range s.history {
		fmt.Fprintf(s.call.Out, "%d - %s\n", i, line)
	}
	return nil
}

// redo carries out a line of the history again.
func (s *shell) redo(_ map[byte]string, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 || n >= len(s.history)-1 {
		return says("Command index out of range")
	}
	line := s.history[n]
	if strings.HasPrefix(strings.TrimSpace(line), "redo") {
		return says("No redoing redos")
	}
	s.history[len(s.history)-1] = line
	return s.do(splitWords(line))
}

func (s *shell) version(map[byte]string, []string) error {
	s.print("ZooKeeper CLI version: 3.8.4 (barnabas)")
	return nil
}
