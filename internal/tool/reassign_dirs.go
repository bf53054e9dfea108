package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// dirMove is one replica that is to lie in a log directory of its broker.
type dirMove struct {
	move
	broker int32
	dir    string
}

func (d dirMove) String() string { return fmt.Sprintf("%s-%d", d.move, d.broker) }

// dirMoves are the replicas of moves that have a log directory, by broker.
func dirMoves(moves []move) (list []dirMove) {
	for _, m := range moves {
		for i, dir := range m.LogDirs {
			if dir != "any" {
				list = append(list, dirMove{m, m.Replicas[i], dir})
			}
		}
	}
	slices.SortFunc(list, func(a, b dirMove) int {
		return cmp.Or(cmp.Compare(a.broker, b.broker), strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return list
}

// moveDirs has the brokers begin the moves. A broker that the controller has yet
// to tell of a replica is asked again, until --timeout.
func (c *Call) moveDirs(admin *kadm.Client, list []dirMove) error {
	timeout, _, err := c.Args.Integer("timeout", 64)
	if err != nil {
		return err
	}
	end := time.Now().Add(time.Duration(timeout) * time.Millisecond)
	for len(list) > 0 {
		var failed error
		list = slices.DeleteFunc(list, func(d dirMove) bool {
			err := c.moveDir(admin, d)
			switch {
			case errors.Is(err, kerr.ReplicaNotAvailable):
				return false
			case err != nil && failed == nil:
				failed = says("Failed to alter dir for %s: %s", d, text(err))
			case err == nil && !c.JSON:
				fmt.Fprintf(c.Out, "Successfully started moving log directory to %s for replica %s with broker %d \n", d.dir, d.move, d.broker)
			}
			return true
		})
		switch {
		case failed != nil || len(list) == 0:
			return failed
		case !time.Now().Before(end):
			return bare("Timed out before log directory move%s could be started for: %s", map[bool]string{true: "s"}[len(list) > 1], joinDirs(list))
		case !pause(c.Context, 100*time.Millisecond):
			return c.Context.Err()
		}
	}
	return nil
}

// cancelDirs moves the replicas that are being copied back to where they are, and
// returns their names.
func (c *Call) cancelDirs(admin *kadm.Client, list []dirMove) (names []string, err error) {
	found, err := c.dirStates(admin, list)
	if err != nil {
		return nil, err
	}
	var back []dirMove
	for _, s := range found {
		if s.state == dirMoving {
			s.dir = s.now
			back, names = append(back, s.dirMove), append(names, s.String())
		}
	}
	if back == nil && !c.JSON {
		fmt.Fprintln(c.Out, "None of the specified partition moves are active.")
	}
	return names, c.moveDirs(admin, back)
}

func (c *Call) moveDir(admin *kadm.Client, d dirMove) error {
	var req kadm.AlterReplicaLogDirsReq
	set := kadm.TopicsSet{}
	set.Add(d.Topic, d.Partition)
	req.Add(d.dir, set)
	done, err := admin.AlterBrokerReplicaLogDirs(c.Context, d.broker, req)
	if err != nil {
		return err
	}
	return done[d.Topic][d.Partition].Err
}

func joinDirs(list []dirMove) string {
	var names []string
	for _, d := range list {
		names = append(names, d.String())
	}
	return strings.Join(names, ",")
}

// How the move of a replica to a log directory stands.
const (
	dirMoving    = "moving"
	dirDone      = "done"
	dirDifferent = "different"
	dirMissing   = "missing"
)

// dirState is how a move stands, and what Kafka's script says of it.
type dirState struct {
	dirMove
	state, line string
	now         string // the log directory that holds the replica
}

// dirStates tells how each move stands.
func (c *Call) dirStates(admin *kadm.Client, list []dirMove) (states []dirState, err error) {
	brokers := map[int32]kadm.TopicsSet{}
	for _, d := range list {
		if brokers[d.broker] == nil {
			brokers[d.broker] = kadm.TopicsSet{}
		}
		set := brokers[d.broker]
		set.Add(d.Topic, d.Partition)
	}
	found := map[int32]kadm.DescribedLogDirs{}
	for id, set := range brokers {
		if found[id], err = admin.DescribeBrokerLogDirs(c.Context, id, set); err != nil {
			return nil, err
		}
	}
	for _, d := range list {
		s := dirState{dirMove: d}
		future := ""
		for _, dir := range found[d.broker] {
			if p, ok := dir.Topics.Lookup(d.Topic, d.Partition); ok && p.IsFuture {
				future = dir.Dir
			} else if ok {
				s.now = dir.Dir
			}
		}
		switch {
		case s.now == "":
			s.state, s.line = dirMissing, fmt.Sprintf("Partition %s is not found in any live log dir on broker %d. There is likely an offline log directory on the broker.", d.move, d.broker)
		case future == d.dir:
			s.state, s.line = dirMoving, fmt.Sprintf("Reassignment of replica %s is still in progress.", d)
		case future != "":
			s.state, s.line = dirMoving, fmt.Sprintf("Partition %s on broker %d is being moved to log dir %s instead of %s.", d.move, d.broker, future, d.dir)
		case s.now == d.dir:
			s.state, s.line = dirDone, fmt.Sprintf("Reassignment of replica %s completed successfully.", d)
		default:
			s.state, s.line = dirDifferent, fmt.Sprintf("Partition %s on broker %d is not being moved from log dir %s to %s.", d.move, d.broker, s.now, d.dir)
		}
		states = append(states, s)
	}
	return states, nil
}
