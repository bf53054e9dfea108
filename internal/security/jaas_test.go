package security

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestJAAS(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`PlainLoginModule required username="admin" password="a b;c=d" user_admin='x"y';`: {"username": "admin", "password": "a b;c=d", "user_admin": `x"y`},
		"\n  a.b.C \t OPTIONAL\n  k=v\n k2 = \"v2\" ;\n":                                  {"k": "v", "k2": "v2"},
		`M Sufficient a="say \"hi\" \\ \101\n";`:                                          {"a": "say \"hi\" \\ A\n"},
		`M requisite a=1 // the rest; is=comment` + "\n" + `b=/* not; */2;`:               {"a": "1", "b": "2"},
		`M required;`:                   {},
		`M required user_müller="ü";`:   {"user_müller": "ü"},
		`M required a="1" a="2";`:       {"a": "2"},
		`M required a="" ;`:             {"a": ""},
		`M required url="http://x/y?";`: {"url": "http://x/y?"},
	} {
		l, err := parseJAAS(text)
		if err != nil || !maps.Equal(l.options, want) {
			t.Errorf("%s: %q, %v, want %q", text, l.options, err, want)
		}
	}
}

func TestBadJAAS(t *testing.T) {
	for _, text := range []string{
		"", ";", "  // nothing", "M", "M;", "M perhaps a=1;", "M required a=1", "M required a;", "M required a=;", "M required a==1;", "M required =1;",
		"M required; N required;", `M required password="s3cret" password;`, `M required a="s3cret`,
	} {
		if l, err := parseJAAS(text); !errors.Is(err, errJAAS) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %+v, %v", text, l, err)
		}
	}
}

func FuzzJAAS(f *testing.F) {
	f.Add(`M required a="b\101" /* c */ d='e';`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parseJAAS(text)
	})
}
