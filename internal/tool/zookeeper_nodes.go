package tool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
)

func (s *shell) print(line string) { fmt.Fprintln(s.call.Out, line) }

func (s *shell) printStat(st jute.Stat) {
	when := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("Mon Jan 02 15:04:05 UTC 2006") }
	fmt.Fprintf(s.call.Out, "cZxid = 0x%x\nctime = %s\nmZxid = 0x%x\nmtime = %s\npZxid = 0x%x\ncversion = %d\ndataVersion = %d\naclVersion = %d\nephemeralOwner = 0x%x\ndataLength = %d\nnumChildren = %d\n",
		st.Czxid, when(st.Ctime), st.Mzxid, when(st.Mtime), st.Pzxid, st.Cversion, st.Version, st.Aversion, uint64(st.EphemeralOwner), st.DataLength, st.NumChildren)
}

func (s *shell) ls(flags map[string]string, args []string) error {
	ctx := s.call.Context
	if _, deep := flags["R"]; deep {
		return s.walk(args[0], func(path string) error {
			s.print(path)
			return nil
		})
	}
	s.deprecated(args, flags, "w", "ls path [watch]", "ls [-w] path")
	list := s.zk.Children
	if _, watching := flags["w"]; watching {
		list = s.zk.ChildrenW
		s.watch(watchChildren, args[0])
	}
	children, stat, err := list(ctx, args[0])
	if err != nil {
		s.unwatch(watchChildren, args[0], flags)
		return err
	}
	slices.Sort(children)
	if s.call.JSON {
		return s.call.printJSON(map[string]any{"path": args[0], "children": append([]string{}, children...)})
	}
	s.print("[" + strings.Join(children, ", ") + "]")
	if _, ok := flags["s"]; ok {
		s.printStat(stat)
	}
	return nil
}

// walk visits a tree level by level, as ZooKeeper's ZKUtil does.
func (s *shell) walk(root string, visit func(path string) error) error {
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
		if err := visit(path); err != nil {
			return err
		}
		slices.Sort(children)
		for _, child := range children {
			queue = append(queue, strings.TrimSuffix(path, "/")+"/"+child)
		}
	}
	return nil
}

func (s *shell) get(flags map[string]string, args []string) error {
	s.deprecated(args, flags, "w", "get path [watch]", "get [-s] [-w] path")
	read := s.zk.Get
	if _, watching := flags["w"]; watching {
		read = s.zk.GetW
		s.watch(watchData, args[0])
	}
	data, stat, err := read(s.call.Context, args[0])
	if err != nil {
		s.unwatch(watchData, args[0], flags)
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
	if _, ok := flags["s"]; ok {
		s.printStat(stat)
	}
	return nil
}

func (s *shell) stat(flags map[string]string, args []string) error {
	s.deprecated(args, flags, "w", "stat path [watch]", "stat [-w] path")
	look := s.zk.Exists
	if _, watching := flags["w"]; watching {
		look = s.zk.ExistsW
		s.watch(watchData, args[0])
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

func (s *shell) create(flags map[string]string, args []string) error {
	mode, ttl, err := createMode(flags)
	if err != nil {
		return err
	}
	var data []byte
	if len(args) > 1 {
		data = []byte(args[1])
	}
	acl := jute.WorldACL()
	if len(args) > 2 {
		if acl, err = parseACL(args[2]); err != nil {
			return err
		}
	}
	var made string
	switch {
	case mode == jute.Container, mode.TTL():
		made, err = s.createExtra(jute.CreateTTLRequest{CreateRequest: jute.CreateRequest{Path: args[0], Data: data, ACL: acl, Mode: mode}, TTL: ttl})
	default:
		made, _, err = s.zk.Create(s.call.Context, args[0], data, mode, acl...)
	}
	if err == nil {
		fmt.Fprintln(s.call.Err, "Created "+made)
	}
	return err
}

// maxTTL is the longest life that a node can be given, in milliseconds
// (EphemeralType.TTL).
const maxTTL = 1<<40 - 1

func createMode(flags map[string]string) (mode zookeeper.CreateMode, ttl int64, err error) {
	_, sequential := flags["s"]
	_, ephemeral := flags["e"]
	_, container := flags["c"]
	life, short := flags["t"]
	if container && (sequential || ephemeral) {
		return 0, 0, says("-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.")
	}
	if short {
		if ttl, err = strconv.ParseInt(life, 10, 64); err != nil {
			return 0, 0, says("-t argument must be a long value")
		}
		switch {
		case ephemeral:
			return 0, 0, says("TTLs cannot be used with Ephemeral znodes")
		case container:
			return 0, 0, says("TTLs cannot be used with Container znodes")
		case ttl < 1 || ttl > maxTTL:
			return 0, 0, says("ttl must be positive and cannot be larger than: %d", maxTTL)
		}
	}
	switch {
	case container:
		mode = jute.Container
	case short && sequential:
		mode = jute.PersistentSequentialTTL
	case short:
		mode = jute.PersistentTTL
	case sequential && ephemeral:
		mode = zookeeper.EphemeralSequential
	case sequential:
		mode = zookeeper.PersistentSequential
	case ephemeral:
		mode = zookeeper.Ephemeral
	}
	return mode, ttl, nil
}

// createExtra makes a node of a kind that Kafka has not.
func (s *shell) createExtra(r jute.CreateTTLRequest) (made string, err error) {
	checked := r.Path
	if r.Mode.Sequential() {
		checked += "0"
	}
	if err := zookeeper.ValidatePath(checked); err != nil {
		return "", err
	}
	r.Path = zookeeper.AddChroot(s.chroot, r.Path)
	var response jute.Create2Response
	if r.Mode == jute.Container {
		err = s.ask(jute.OpCreateContainer, &r.CreateRequest, &response)
	} else {
		err = s.ask(jute.OpCreateTTL, &r, &response)
	}
	return zookeeper.CutChroot(s.chroot, response.Path), err
}

func version(flags map[string]string) (int32, error) {
	v, ok := flags["v"]
	if !ok {
		return zookeeper.AnyVersion, nil
	}
	return atoi(v)
}

func (s *shell) set(flags map[string]string, args []string) error {
	v, err := version(flags)
	if err != nil {
		return err
	}
	stat, err := s.zk.Set(s.call.Context, args[0], []byte(args[1]), v)
	if _, ok := flags["s"]; ok && err == nil {
		s.printStat(stat)
	}
	return err
}

func (s *shell) delete(flags map[string]string, args []string) error {
	s.deprecated(args, flags, "v", "delete path [version]", "delete [-v version] path")
	v, err := version(flags)
	if err != nil {
		return err
	}
	return s.zk.Delete(s.call.Context, args[0], v)
}

func (s *shell) deleteAll(flags map[string]string, args []string) error {
	batch := 1000
	if size, ok := flags["b"]; ok {
		n, err := atoi(size)
		if err != nil {
			return says("-b argument must be an int value")
		}
		batch = max(1, int(n))
	}
	var ops []zookeeper.Op
	err := s.walk(args[0], func(path string) error {
		ops = append(ops, zookeeper.DeleteOp(path, zookeeper.AnyVersion))
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.call.confirm("This deletes " + args[0] + " and all below."); err != nil {
		return err
	}
	slices.Reverse(ops) // what is below goes first
	for some := range slices.Chunk(ops, batch) {
		if _, err := s.zk.Multi(s.call.Context, some...); err != nil {
			return s.refuse("Failed to delete some node(s) in the subtree!")
		}
	}
	return nil
}

func (s *shell) getACL(flags map[string]string, args []string) error {
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
	if _, ok := flags["s"]; ok {
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

func (s *shell) setACL(flags map[string]string, args []string) error {
	v, err := version(flags)
	if err != nil {
		return err
	}
	acl, err := parseACL(args[1])
	if err != nil {
		return err
	}
	if _, deep := flags["R"]; deep {
		return s.walk(args[0], func(path string) error {
			_, err := s.zk.SetACL(s.call.Context, path, acl, v)
			return err
		})
	}
	stat, err := s.zk.SetACL(s.call.Context, args[0], acl, v)
	if _, ok := flags["s"]; ok && err == nil {
		s.printStat(stat)
	}
	return err
}
