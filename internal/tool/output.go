package tool

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// printJSON writes one JSON document.
func (c *Call) printJSON(v any) error {
	e := json.NewEncoder(c.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// confirm asks before something is destroyed, if there is somebody to ask.
func (c *Call) confirm(what string) error {
	if c.Keyboard == nil || c.Args.Has("yes") {
		return nil
	}
	fmt.Fprintf(c.Err, "%s Are you sure? Type yes: ", what)
	line, err := bufio.NewReader(c.In).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err == nil && (answer == "yes" || answer == "y") {
		return nil
	}
	fmt.Fprintln(c.Err, "Nothing was done.")
	return ErrReported
}

// progress is a bar on the screen; there is none when nobody looks, and none
// for what is over within a moment.
type progress struct {
	c     *Call
	what  string
	total int64
	next  time.Time // when it is drawn again
	drawn bool
}

// barEvery is the time between two looks of a bar.
const barEvery = 200 * time.Millisecond

func (c *Call) progress(what string, total int64) *progress {
	return &progress{c: c, what: what, total: total, next: time.Now().Add(barEvery)}
}

func (p *progress) show(done int64) {
	if !p.c.Screen || p.c.JSON || p.total < 1 {
		return
	}
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next, p.drawn = now.Add(barEvery), true
	const width = 40
	full := int(width * done / p.total)
	fmt.Fprintf(p.c.Err, "\r[%s%s] %d of %d %s", strings.Repeat("#", full), strings.Repeat(".", width-full), done, p.total, p.what)
}

// end takes the bar away.
func (p *progress) end() {
	if p.drawn {
		fmt.Fprint(p.c.Err, "\r\x1b[K")
		p.drawn = false
	}
}

// yes is the option that confirm looks for.
var yes = Option{Name: "yes", Ours: true, Text: "Do not ask before something is destroyed."}

// bootstrap and commandConfig are options of most commands.
var (
	bootstrap     = Option{Name: "bootstrap-server", Arg: "String: server to connect to", Required: true, Text: "The Kafka server to connect to."}
	commandConfig = Option{Name: "command-config", Arg: "String: command config property file", Text: "Property file containing configs to be passed to Admin Client."}
)
