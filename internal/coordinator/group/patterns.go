package group

import (
	"errors"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"time"

	"barnabas/internal/coordinator"
)

// A member may subscribe to the topics whose names a regular expression of
// RE2's syntax matches (SubscribedTopicRegex). What each expression of the
// members matches is stored, and looked for again when topics have come.

// lookInterval is how long new topics wait to be looked at, so that a storm of
// them costs each group one look (Kafka's REGEX_BATCH_REFRESH_MIN_INTERVAL_MS).
const lookInterval = 10 * time.Second

// maxPatternWeight bounds what an expression may cost: a short one can stand for
// millions of instructions.
const maxPatternWeight = 20000

var errPatternTooLarge = errors.New("expression too large")

// look is when the topics were looked through for all of a group's expressions.
// It lives in memory only.
type look struct {
	came uint64 // Config.TopicsCame then
	at   time.Time
}

// pattern returns the expression that a member subscribes to, "" for none.
func (m *consumerMember) pattern() string {
	if m.regex == nil {
		return ""
	}
	return *m.regex
}

// wants returns the topics that a member subscribes to, by name or expression.
func (m *consumerMember) wants(patterns map[string][]string) []string {
	if m.pattern() == "" {
		return m.topics
	}
	return sortedNames(slices.Concat(m.topics, patterns[m.pattern()]))
}

// compilePattern refuses what is no expression of RE2's syntax or costs too much.
func compilePattern(expression string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err == nil && weight(tree) > maxPatternWeight {
		err = errPatternTooLarge
	}
	var invalid *syntax.Error
	if errors.As(err, &invalid) {
		err = errors.New(invalid.Code.String())
	}
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expression)
	if err == nil {
		re.Longest()
	}
	return re, err
}

// weight is roughly how many instructions an expression becomes.
func weight(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, part := range re.Sub {
		n = min(n+weight(part), maxPatternWeight+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxPatternWeight+1)
}

// matching returns the topics whose whole names an expression matches, in order.
func (m *Machine) matching(expression string) (topics []string) {
	re, err := compilePattern(expression)
	if err != nil {
		return nil // stored by another release
	}
	m.c.Topics(func(name string) bool {
		if at := re.FindStringIndex(name); at != nil && at[0] == 0 && at[1] == len(name) {
			topics = append(topics, name)
		}
		return true
	})
	slices.Sort(topics)
	return topics
}

// match returns what the expressions of the members match once after is one of
// them, and stores what has changed of it (maybeUpdateRegularExpressions). Kafka
// looks in a thread of its own and has the group rebalance a little later.
func (m *Machine) match(g *group, c *consumerGroup, before, after *consumerMember, h *heartbeat) (patterns map[string][]string, changed bool) {
	mine := after.pattern()
	if len(c.patterns) == 0 && mine == "" {
		return nil, false
	}
	came := m.c.TopicsCame()
	all := came != c.looked.came && h.now.Sub(c.looked.at) >= lookInterval
	if _, known := c.patterns[mine]; !all && mine == before.pattern() && h.replaces == "" && (known || mine == "") {
		return c.patterns, false
	}
	patterns = map[string][]string{}
	if mine != "" {
		patterns[mine] = nil
	}
	for _, other := range c.members {
		if p := other.pattern(); p != "" && other.id != after.id && other.id != h.replaces {
			patterns[p] = nil
		}
	}
	c.dropUnused(g.id, patterns, h.out)
	for _, p := range slices.Sorted(maps.Keys(patterns)) {
		known, ok := c.patterns[p]
		patterns[p] = known
		if ok && !all {
			continue
		}
		patterns[p] = m.matching(p)
		if !ok || !slices.Equal(known, patterns[p]) {
			h.out.Append(consumerKey(patternKey, g.id, p), patternValue(patterns[p], h.now))
			changed = true
		}
	}
	if all {
		c.looked = look{came, h.now}
	}
	return patterns, changed
}

// lookAgain takes back that a group's topics were looked through.
func (m *Machine) lookAgain(group string) {
	if g := m.groups[group]; g != nil && g.consumer != nil {
		g.consumer.looked = look{}
	}
}

// dropUnused deletes the records of expressions that are not among used.
func (c *consumerGroup) dropUnused(group string, used map[string][]string, out *coordinator.Effects) {
	for _, p := range slices.Sorted(maps.Keys(c.patterns)) {
		if _, ok := used[p]; !ok {
			out.Append(consumerKey(patternKey, group, p), nil)
		}
	}
}

// dropPatterns deletes the records of expressions that only members who are gone
// had, and returns the topics that the others match.
func (g *group) dropPatterns(gone []*consumerMember, out *coordinator.Effects) (topics []string) {
	c := g.consumer
	if len(c.patterns) == 0 {
		return nil
	}
	used := map[string][]string{}
	for _, m := range c.members {
		if p := m.pattern(); p != "" && !slices.Contains(gone, m) {
			used[p] = c.patterns[p]
		}
	}
	c.dropUnused(g.id, used, out)
	for _, matches := range used {
		topics = append(topics, matches...)
	}
	return topics
}
