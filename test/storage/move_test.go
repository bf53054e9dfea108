package storage

import "testing"

// Folders go from one broker to the next and back: each serves all that the
// others wrote, adds to it, and is stopped or killed. Two at a time: much of it
// is waiting.
func TestFoldersMoveBetweenKafkaAndBarnabas(t *testing.T) {
	for _, turns := range [][]string{
		{"3.9.1", "barnabas", "3.9.1", "barnabas"},
		{"2.8.2", "barnabas", "2.8.2"},
		{"barnabas", "3.9.1", "barnabas", "2.8.2"},
	} {
		for _, killed := range []bool{false, true} {
			name := "stopped"
			if killed {
				name = "killed"
			}
			t.Run(turns[0]+"-first-"+name, func(t *testing.T) {
				t.Parallel()
				takeTurns(t, turns, killed)
			})
		}
	}
}

func takeTurns(t *testing.T, turns []string, killed bool) {
	w := newWorld(t)
	served := map[string][]string{}
	for i, who := range turns {
		w.start(who)
		if i == 0 {
			w.createAll(who)
		}
		continues(t, who, served, w.everything())
		w.fill(i)
		served = w.everything()
		if killed {
			w.process.Kill()
		} else {
			w.stop()
			w.dumpLogSegments("3.9.1")
		}
	}
	w.start("barnabas")
	continues(t, "barnabas at the end", served, w.everything())
	w.stop()
	w.dumpLogSegments("3.9.1")
}
