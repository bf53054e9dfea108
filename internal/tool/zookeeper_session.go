package tool

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
)

// close ends the session; the shell may connect again.
func (s *shell) close(map[string]string, []string) error {
	if s.end() {
		s.show("Closed", "None", "")
	}
	return nil
}

// connect ends the session and begins one at a server, by default at the same.
func (s *shell) connect(_ map[string]string, args []string) error {
	server := s.server
	if len(args) > 0 {
		server = args[0]
	}
	_ = s.close(nil, nil) // has no error
	return s.open(server)
}

func (s *shell) addAuth(_ map[string]string, args []string) error {
	a := zookeeper.Auth{Scheme: args[0]}
	if len(args) > 1 {
		a.Data = []byte(args[1])
	}
	return s.zk.AddAuth(a)
}

func (s *shell) whoAmI(map[string]string, []string) error {
	var who jute.WhoAmIResponse
	if err := s.ask(jute.OpWhoAmI, nil, &who); err != nil {
		return err
	}
	if s.call.JSON {
		return s.call.printJSON(map[string]any{"identities": who.IDs})
	}
	s.print("Auth scheme: User")
	for _, id := range who.IDs {
		s.print(id.Scheme + ": " + id.ID)
	}
	return nil
}

// getEphemerals lists the session's own nodes that go with it.
func (s *shell) getEphemerals(_ map[string]string, args []string) error {
	under := "/"
	if len(args) > 0 {
		under = args[0]
	}
	if under != "/" && zookeeper.ValidatePath(under) != nil {
		return jute.ErrBadArguments
	}
	var found jute.GetChildrenResponse
	if err := s.ask(jute.OpGetEphemerals, &jute.PathRequest{Path: zookeeper.AddChroot(s.chroot, under)}, &found); err != nil {
		return err
	}
	paths := append([]string{}, found.Children...) // ZooKeeper's shell leaves the chroot on too
	slices.Sort(paths)
	if s.call.JSON {
		return s.call.printJSON(map[string]any{"ephemerals": paths})
	}
	s.print("[" + strings.Join(paths, ", ") + "]")
	return nil
}

func (s *shell) countAll(_ map[string]string, args []string) error {
	if err := zookeeper.ValidatePath(args[0]); err != nil {
		return err
	}
	var n jute.CountResponse
	if err := s.ask(jute.OpGetAllChildrenNumber, &jute.PathRequest{Path: zookeeper.AddChroot(s.chroot, args[0])}, &n); err != nil {
		return err
	}
	if s.call.JSON {
		return s.call.printJSON(map[string]any{"path": args[0], "count": n.Count})
	}
	s.print(strconv.Itoa(int(n.Count)))
	return nil
}

func (s *shell) sync(_ map[string]string, args []string) error {
	err := s.zk.Sync(s.call.Context, args[0])
	var code jute.Error
	switch {
	case errors.As(err, &code) && code != jute.ErrBadArguments:
		s.print(fmt.Sprintf("Sync has failed. rc=%d", int32(code)))
		if code == jute.ErrAuthFailed {
			_ = s.end() // the session is over
		}
		return nil
	case err != nil:
		return err
	}
	s.print("Sync is OK")
	return nil
}

func (s *shell) version(map[string]string, []string) error {
	s.print("ZooKeeper CLI version: 3.8.4 (barnabas)")
	return nil
}

// watch notes a one-shot watch before it is left, since its event may come with
// the answer.
func (s *shell) watch(kind watchKind, at string) {
	s.watches.note(watch{kind, zookeeper.AddChroot(s.chroot, at)}, true)
}

func (s *shell) unwatch(kind watchKind, at string, flags map[string]string) {
	if _, was := flags["w"]; was {
		s.watches.note(watch{kind, zookeeper.AddChroot(s.chroot, at)}, false)
	}
}

func (s *shell) addWatch(flags map[string]string, args []string) error {
	w, mode := watch{watchRecursive, zookeeper.AddChroot(s.chroot, args[0])}, jute.WatchPersistentRecursive
	switch m := strings.ToUpper(flags["m"]); m {
	case "", "PERSISTENT_RECURSIVE":
	case "PERSISTENT":
		w.kind, mode = watchPersistent, jute.WatchPersistent
	default:
		return says("%s", shellCommands["addWatch"].usage)
	}
	if err := zookeeper.ValidatePath(args[0]); err != nil {
		return err
	}
	if _, err := s.zk.Do(s.call.Context, zookeeper.AddWatchOp(args[0], mode)); err != nil {
		return err
	}
	s.watches.note(w, true)
	return nil
}

// removeWatches takes the session's watches off a node. As ZooKeeper's client
// does, it asks nobody about watches that it knows not to be there; with -l
// those are gone even if no server can be asked.
func (s *shell) removeWatches(flags map[string]string, args []string) error {
	if err := zookeeper.ValidatePath(args[0]); err != nil {
		return err
	}
	kinds, which := []watchKind{watchChildren, watchData, watchPersistent, watchRecursive}, jute.WatchTypeAny
	if _, ok := flags["c"]; ok {
		kinds, which = []watchKind{watchChildren}, jute.WatchTypeChildren
	} else if _, ok := flags["d"]; ok {
		kinds, which = []watchKind{watchData}, jute.WatchTypeData
	}
	at := zookeeper.AddChroot(s.chroot, args[0])
	there := s.watches.kept(at, kinds...)
	if len(there) == 0 {
		return jute.ErrNoWatcher
	}
	_, err := s.zk.Do(s.call.Context, zookeeper.RemoveWatchesOp(args[0], which))
	if _, local := flags["l"]; err != nil && !(local && err == jute.ErrConnectionLoss) {
		return err
	}
	said := map[string]bool{}
	for _, w := range there {
		s.watches.note(w, false)
		event := map[watchKind]string{watchChildren: "ChildWatchRemoved", watchData: "DataWatchRemoved"}[w.kind]
		if event == "" {
			event = "PersistentWatchRemoved"
		}
		if !said[event] {
			s.show("SyncConnected", event, args[0])
		}
		said[event] = true
	}
	return nil
}

// printWatches turns the showing of events on and off.
func (s *shell) printWatches(_ map[string]string, args []string) error {
	if len(args) == 0 {
		s.print("printwatches is " + map[bool]string{true: "off", false: "on"}[s.quiet.Load()])
		return nil
	}
	s.quiet.Store(args[0] != "on")
	return nil
}

// shownHistory is how many lines history shows.
const shownHistory = 11

func (s *shell) showHistory(map[string]string, []string) error {
	for i := max(0, len(s.history)-shownHistory); i < len(s.history); i++ {
		fmt.Fprintf(s.call.Out, "%d - %s\n", i, s.history[i])
	}
	return nil
}

// redo carries out a line of the history again.
func (s *shell) redo(_ map[string]string, args []string) error {
	if len(args) == 0 {
		return nil
	}
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

// config shows the members of the ensemble.
func (s *shell) config(flags map[string]string, _ []string) error {
	_, watching := flags["w"]
	if watching {
		s.watch(watchData, configNode)
	}
	var r jute.GetDataResponse // the node is not below a chroot
	if err := s.ask(jute.OpGetData, &jute.PathWatchRequest{Path: configNode, Watch: watching}, &r); err != nil {
		return err
	}
	text := string(r.Data)
	if _, ok := flags["c"]; ok {
		text = clientAddresses(text)
	}
	if s.call.JSON {
		return s.call.printJSON(map[string]any{"config": text})
	}
	s.print(text)
	if _, ok := flags["s"]; ok {
		s.printStat(r.Stat)
	}
	return nil
}

const configNode = "/zookeeper/config"

// clientAddresses is the version of a configuration and where its servers
// listen to clients: what stands after the ; of each "server.N=".
func clientAddresses(config string) string {
	version, addrs := "", []string{}
	for line := range strings.Lines(config) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case name == "version":
			version = value
		case strings.HasPrefix(name, "server."):
			if _, addr, ok := strings.Cut(value, ";"); ok {
				addrs = append(addrs, addr)
			}
		}
	}
	return version + " " + strings.Join(addrs, ",")
}

// reconfig changes the members of an ensemble that allows it.
func (s *shell) reconfig(flags map[string]string, _ []string) error {
	_, file := flags["file"]
	_, members := flags["members"]
	_, add := flags["add"]
	_, remove := flags["remove"]
	r := jute.ReconfigRequest{Joining: flags["add"], Leaving: flags["remove"], Members: flags["members"], Config: -1}
	switch {
	case (file || members) && (add || remove):
		return says("Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes is not allowed)")
	case file && members:
		return says("Can't use -file and -members together (conflicting non-incremental modes)")
	case !file && !members && !add && !remove:
		return says("%s", shellCommands["reconfig"].usage)
	}
	if v, ok := flags["v"]; ok {
		n, err := strconv.ParseInt(v, 16, 64)
		if err != nil {
			return says("-v must be followed by a long (configuration version)")
		}
		r.Config = n
	}
	if file {
		text, err := os.ReadFile(flags["file"])
		if err != nil {
			return says("Error processing %s: %v", path.Clean(flags["file"]), err)
		}
		r.Members = serversOf(string(text))
	}
	var response jute.GetDataResponse
	if err := s.ask(jute.OpReconfig, &r, &response); err != nil {
		return err
	}
	s.print("Committed new configuration:\n" + string(response.Data))
	if _, ok := flags["s"]; ok {
		s.printStat(response.Stat)
	}
	return nil
}

// serversOf returns the servers that a configuration file names, as a reconfig
// takes them.
func serversOf(config string) string {
	var list []string
	for line := range strings.Lines(config) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "server.") {
			list = append(list, line)
		}
	}
	return strings.Join(list, ",")
}
