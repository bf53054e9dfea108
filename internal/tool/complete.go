package tool

import (
	"context"
	"slices"
	"strings"
	"time"

	"barnabas/internal/config"

	"github.com/twmb/franz-go/pkg/kadm"
)

// completionPatience is how long a shell waits for names of the cluster.
const completionPatience = 2 * time.Second

// Complete returns what may stand at the end of a command line: names of
// options, or the values of the option before. Topics and groups are asked of
// the cluster that --bootstrap-server names, or of localhost:9092. files: it is
// the name of a file.
func (c *Command) Complete(ctx context.Context, before []string, last string) (words []string, files bool) {
	if len(before) > 0 {
		name, ok := strings.CutPrefix(before[len(before)-1], "--")
		o, known := c.option(name)
		if ok && known && o.Arg != "" && !(o.Optional && strings.HasPrefix(last, "-")) {
			return c.values(ctx, o, before, last)
		}
	}
	if c.Words != nil && !strings.HasPrefix(last, "-") {
		if words = beginningWith(last, c.Words(ctx, c, before)); len(words) > 0 {
			return words, false
		}
	}
	for _, o := range c.sorted() {
		if n := "--" + o.Name; strings.HasPrefix(n, last) {
			words = append(words, n+"\t"+strings.SplitN(o.Text, ". ", 2)[0])
		}
	}
	return words, false
}

func (c *Command) values(ctx context.Context, o Option, before []string, last string) (words []string, files bool) {
	all := o.Values
	switch {
	case o.Topic, o.Group:
		all = c.names(ctx, o, before[:len(before)-1])
	case o.Property:
		all = propertyNames(o, before)
	case strings.Contains(o.Arg, "file"), strings.HasSuffix(o.Name, "-file"):
		return nil, true
	}
	return beginningWith(last, all), false
}

func beginningWith(prefix string, words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
}

// propertyNames are those of brokers if the command line names one, else those
// of topics; with = where a value follows.
func propertyNames(o Option, before []string) (all []string) {
	definitions, after := config.TopicDefinitions(), "="
	if slices.Contains(before, "brokers") || slices.Contains(before, "--broker") || slices.Contains(before, "--broker-defaults") {
		definitions = config.BrokerDefinitions()
	}
	if strings.HasPrefix(o.Name, "delete") {
		after = ""
	}
	for _, d := range definitions {
		all = append(all, d.Name+after)
	}
	return all
}

// names asks the cluster; without an answer there are none.
func (c *Command) names(ctx context.Context, o Option, before []string) []string {
	args, err := c.parse(before)
	if err != nil {
		return nil
	}
	if !args.Has("bootstrap-server") {
		args.values["bootstrap-server"] = []string{"localhost:9092"}
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	call := &Call{Context: ctx, Args: args}
	k, err := call.kafka()
	if err != nil {
		return nil
	}
	defer k.Close()
	admin := kadm.NewClient(k)
	if o.Group {
		groups, _ := admin.ListGroups(ctx) // those of the brokers that answer
		return groups.Groups()
	}
	topics, err := admin.ListTopicsWithInternal(ctx)
	if err != nil {
		return nil
	}
	return topics.Names()
}
