package tool

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// column is the width that jopt-simple gives the left column.
const column = 41

// sorted returns all options by name.
func (c *Command) sorted() []Option {
	list := append(slices.Clone(c.Options), ours...)
	slices.SortFunc(list, func(a, b Option) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (o Option) head() string {
	switch {
	case o.Arg == "":
		return "--" + o.Name
	case o.Optional:
		return "--" + o.Name + " [" + o.Arg + "]"
	}
	return "--" + o.Name + " <" + o.Arg + ">"
}

func (o Option) describe(script string) string {
	text := o.Text
	if o.Required {
		text = "REQUIRED: " + text
	}
	if o.Default != "" {
		text += " (default: " + o.Default + ")"
	}
	if o.Ours && script != "" {
		text += " (Not in Kafka's script.)"
	}
	return text
}

func (c *Command) printTable(w io.Writer) {
	fmt.Fprintf(w, "%-*s%s\n%-*s%s\n", column, "Option", "Description", column, "------", "-----------")
	for _, o := range c.sorted() {
		head := o.head()
		for i, line := range wrap(o.describe(c.Script), 39) {
			if i > 0 {
				line = "  " + line
			}
			if len(head) >= column {
				fmt.Fprintln(w, head)
				head = ""
			}
			fmt.Fprintf(w, "%-*s%s\n", column, head, line)
			head = ""
		}
	}
}

// PrintHelp prints what the command is for, and its options.
func (c *Command) PrintHelp(w io.Writer) {
	purpose := c.Purpose // a script's is one line
	if c.Script == "" {
		purpose = paragraphs(purpose) + "\n"
	}
	fmt.Fprintln(w, purpose)
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n\n", paragraphs(c.Long))
	}
	c.printTable(w)
	if len(c.Example) > 0 {
		fmt.Fprintln(w, "\nExamples:")
		for _, e := range c.Example {
			fmt.Fprintln(w, "  "+e)
		}
	}
}

// paragraphs breaks long lines of text; those that a tab indents stay.
func paragraphs(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "\t") {
			lines = append(lines, line)
		} else {
			lines = append(lines, wrap(line, 100)...)
		}
	}
	return strings.Join(lines, "\n")
}

// Page returns the command's page in docs/commands, in Markdown.
func (c *Command) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# barnabas %s\n\n%s", c.Name, c.Purpose)
	if c.Script != "" {
		fmt.Fprintf(&b, " Called through a link as `%s` or `%s.sh` it is that script of Kafka %s.", c.Script, c.Script, Version)
	}
	b.WriteString("\n\n")
	if c.Long != "" {
		fmt.Fprintf(&b, "%s\n\n", c.Long)
	}
	if len(c.Example) > 0 {
		fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.Join(c.Example, "\n"))
	}
	b.WriteString("| option | what it does |\n|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", ">", "&gt;")
	for _, o := range c.sorted() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(o.head(), "|", `\|`), cell.Replace(o.describe(c.Script)))
	}
	return b.String()
}

func wrap(text string, width int) (lines []string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			if line != "" && len(line)+1+len(word) > width {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}
