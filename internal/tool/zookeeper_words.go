package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
)

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

// do carries out one command.
func (s *shell) do(words []string) error {
	c, ok := shellCommands[words[0]]
	if !ok {
		fmt.Fprintf(s.call.Err, "ZooKeeper -server host:port [-zk-tls-config-file <file>] cmd args\n%s\n", shellHelp())
		if words[0] != "help" {
			fmt.Fprintf(s.call.Err, "Command not found: Command not found %s\n", words[0])
		}
		return &ExitError{127}
	}
	s.seen()
	if s.closed && !c.alone {
		s.print("Not connected")
		return nil
	}
	var flags map[string]string
	rest, err := words[1:], error(nil)
	if !c.alone {
		if flags, rest, err = c.split(rest); err != nil {
			return err
		}
	}
	if len(rest) < c.least {
		return says("%s", c.usage)
	}
	err = c.run(s, flags, rest)
	if errors.Is(err, jute.ErrAuthFailed) { // an identity was refused, which ends the session
		_ = s.end()
		s.print("Not connected")
		return nil
	}
	return named(err, strings.Join(rest[:min(1, len(rest))], ""))
}

// split parts options from arguments, as Apache Commons' PosixParser does:
// options may come anywhere before --, and several may share one -.
func (c shellCommand) split(words []string) (flags map[string]string, rest []string, err error) {
	flags = map[string]string{}
	known := strings.Fields(c.flags)
	first := ""
	add := func(name, value string) error {
		if c.one && first != "" && first != name {
			return says("The option '%s' was specified but an option from this group has already been selected: '%s'", name, first)
		}
		if before, ok := flags[name]; ok && before != "" {
			value = before + "," + value
		}
		first, flags[name] = name, value
		return nil
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			return flags, append(rest, words[i+1:]...), nil
		}
		if len(w) < 2 || w[0] != '-' {
			rest = append(rest, w)
			continue
		}
		for name := w[1:]; name != ""; {
			whole := name
			if !slices.Contains(known, whole) && !slices.Contains(known, whole+":") {
				name = name[:1] // the first of several
			}
			value, more := "", whole[len(name):]
			switch {
			case slices.Contains(known, name+":") && more != "":
				value, more = more, ""
			case slices.Contains(known, name+":"):
				if i++; i == len(words) || isFlag(known, words[i]) {
					return nil, nil, says("Missing argument for option: %s", name)
				}
				value = words[i]
			case !slices.Contains(known, name):
				return nil, nil, says("Unrecognized option: %s", w)
			}
			if err := add(name, value); err != nil {
				return nil, nil, err
			}
			name = more
		}
	}
	return flags, rest, nil
}

func isFlag(known []string, word string) bool {
	name, ok := strings.CutPrefix(word, "-")
	return ok && (slices.Contains(known, name) || slices.Contains(known, name+":"))
}

// deprecated warns of an option without its -, at the end as in ZooKeeper 3.4,
// and takes it as one.
func (s *shell) deprecated(args []string, flags map[string]string, flag, old, now string) {
	if len(args) < 2 {
		return
	}
	fmt.Fprintf(s.call.Err, "'%s' has been deprecated. Please use '%s' instead.\n", old, now)
	flags[flag] = args[1]
}

// pathError says what is wrong with a path, in the words of ZooKeeper's client.
func pathError(path string) error {
	switch {
	case path == "" || path[0] != '/':
		return says("Path must start with / character")
	case strings.HasSuffix(path, "/"):
		return says("Path must not end with / character")
	}
	at := 0
	for part := range strings.SplitSeq(path[1:], "/") {
		at += 1 + len(part)
		switch part {
		case "":
			return says("Invalid path string %q caused by empty node name specified @%d", path, at)
		case ".", "..":
			return says("Invalid path string %q caused by relative paths not allowed @%d", path, at-1)
		}
	}
	return says("Invalid path string %q: it has a character that no node's name may have", path)
}

// keeperTexts are what the shell says of an error, before the path.
var keeperTexts = map[jute.Error]string{
	jute.ErrNoNode: "Node does not exist: ", jute.ErrNodeExists: "Node already exists: ", jute.ErrNotEmpty: "Node not empty: ",
	jute.ErrBadVersion: "version No is not valid : ", jute.ErrNoAuth: "Insufficient permission : ", jute.ErrInvalidACL: "Acl is not valid : ",
	jute.ErrBadArguments: "Arguments are not valid : ", jute.ErrNoChildrenForEphemerals: "Ephemerals cannot have children: ",
	jute.ErrNotReadOnly: "Not a read-only call: ", jute.ErrQuotaExceeded: "Quota has exceeded : ",
}

// keeperNames are the other errors that a server answers.
var keeperNames = map[jute.Error]string{
	jute.ErrConnectionLoss: "ConnectionLoss", jute.ErrSessionExpired: "Session expired", jute.ErrUnimplemented: "Unimplemented",
	jute.ErrNoWatcher: "No such watcher", jute.ErrReconfigDisabled: "Reconfig is disabled", jute.ErrSystemError: "SystemError",
	jute.ErrMarshallingError: "MarshallingError", jute.ErrOperationTimeout: "OperationTimeout", jute.ErrThrottledOp: "Op throttled due to high load",
	jute.ErrSessionClosedRequireSASLAuth: "Session closed because client failed to authenticate",
}

// named gives an error the words of ZooKeeper's shell.
func named(err error, path string) error {
	var code jute.Error
	switch {
	case err == nil, errors.Is(err, errQuit), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, jute.ErrBadArguments) && zookeeper.ValidatePath(path) != nil:
		return pathError(path)
	case errors.Is(err, jute.ErrReconfigInProgress):
		return says("Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)")
	case errors.Is(err, jute.ErrNewConfigNoQuorum):
		return says("No quorum of new config is connected and up-to-date with the leader of last commmitted config - try invoking reconfiguration after new servers are connected and synced")
	case !errors.As(err, &code):
		return err
	}
	if text, ok := keeperTexts[code]; ok {
		return says("%s%s", text, path)
	}
	name := keeperNames[code]
	if name == "" {
		name = "Unknown error"
	}
	if path != "" {
		path = " for " + path
	}
	return says("KeeperErrorCode = %s%s", name, path)
}
