package tool

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
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

// yes is the option that confirm looks for.
var yes = Option{Name: "yes", Ours: true, Text: "Do not ask before something is destroyed."}

// bootstrap and commandConfig are options of most commands.
var (
	bootstrap     = Option{Name: "bootstrap-server", Arg: "String: server to connect to", Required: true, Text: "The Kafka server to connect to."}
	commandConfig = Option{Name: "command-config", Arg: "String: command config property file", Text: "Property file containing configs to be passed to Admin Client."}
)
