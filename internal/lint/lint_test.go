package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module       = "barnabas"
	maxFileLines = 1000
	maxFuncLines = 150
)

// tiers are the packages from the lowest to the highest: a package may import
// those of lower tiers only. What a tier is for stands in the packages' own
// comments.
var tiers = [][]string{
	{"internal/vfs", "internal/poll", "internal/wire", "internal/jute", "internal/znode", "internal/config", "internal/pemstore"},
	{"internal/record", "internal/peer", "internal/zookeeper"},
	{"internal/storage", "internal/keeper"},
	{"internal/metadata", "internal/replica"},
	{"internal/coordinator", "internal/controller"},
	{"internal/security"},
	{"internal/api"},
	{"internal/server"},
	{"internal/broker"},
	{"internal/tool"},
	{"cmd/barnabas"},
}

// sideways are the imports within one tier.
var sideways = []string{
	"internal/znode -> internal/wire", // topic ids
}

// decisions names the files (or folders) that decide without I/O, clock, lock
// or goroutine: time comes in as an argument, effects go out as values.
var decisions = []string{
	"internal/controller/core",
	"internal/coordinator/group",
	"internal/coordinator/txn",
	"internal/keeper/acl.go", "internal/keeper/apply.go", "internal/keeper/container.go", "internal/keeper/core.go", "internal/keeper/path.go",
	"internal/keeper/prepare.go", "internal/keeper/quota.go", "internal/keeper/session.go", "internal/keeper/snapshot.go", "internal/keeper/tree.go", "internal/keeper/watch.go",
	"internal/replica/isr.go",
}

// notInDecisions are the imports that decision code must not have. log/slog is
// not among them: its levels are values, and a line to be logged is an effect.
var notInDecisions = []string{"os", "net", "sync", "context", "barnabas/internal/vfs", "barnabas/internal/zookeeper"}

// notCalled are the functions of otherwise harmless packages that decision code
// must not use.
var notCalled = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Sleep"},
	"slog": {"Default", "Debug", "Info", "Warn", "Error", "Log", "New"},
}

// free are folders outside the tiers: the public client, and what only tests
// and benchmarks use.
var free = []string{"client", "test", "bench", "internal/lint"}

type source struct {
	path string // slashes, from the root of the tree
	file *ast.File
	test bool
}

func root(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

func parse(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	set := token.NewFileSet()
	var sources []source
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != top && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "barnabas-data") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		sources = append(sources, source{filepath.ToSlash(rel), f, strings.HasSuffix(name, "_test.go")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, sources
}

func folder(path string) string { return filepath.ToSlash(filepath.Dir(path)) }

func isFree(dir string) bool {
	return slices.ContainsFunc(free, func(f string) bool { return dir == f || strings.HasPrefix(dir, f+"/") })
}

// tier returns the tier of a folder: its own or its nearest parent's.
func tier(dir string) int {
	for d := dir; d != "."; d = folder(d) {
		for i, packages := range tiers {
			if slices.Contains(packages, d) {
				return i
			}
		}
	}
	return -1
}

func within(dir, parent string) bool { return dir == parent || strings.HasPrefix(dir, parent+"/") }

func TestImportsPointDownwards(t *testing.T) {
	_, sources := parse(t)
	for _, s := range sources {
		from := folder(s.path)
		if isFree(from) {
			continue
		}
		if tier(from) < 0 {
			t.Errorf("%s: the folder has no place in the table `tiers`; give it one, as low as what it imports allows", s.path)
			continue
		}
		for _, spec := range s.file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			to, ours := strings.CutPrefix(path, module+"/")
			if !ours || within(to, from) || within(from, to) {
				continue
			}
			if s.test && isFree(to) {
				continue
			}
			if tier(to) < tier(from) || sameHouse(from, to) || slices.Contains(sideways, from+" -> "+to) {
				continue
			}
			t.Errorf("%s imports %s, which is not below it. Pass in what it needs as an argument or an interface that %s declares, or move the code down", s.path, to, from)
		}
	}
}

// sameHouse tells whether two folders lie under one package of the table, as
// coordinator/group and coordinator/txn do.
func sameHouse(a, b string) bool {
	for _, packages := range tiers {
		for _, p := range packages {
			if within(a, p) && within(b, p) {
				return true
			}
		}
	}
	return false
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	_, sources := parse(t)
	comments := map[string]bool{}
	for _, s := range sources {
		if !s.test {
			dir := folder(s.path)
			comments[dir] = comments[dir] || s.file.Doc != nil && len(s.file.Doc.Text()) > 60
		}
	}
	for dir, ok := range comments {
		if !ok {
			t.Errorf("%s: no package comment. Say in doc.go what the package owns, what it refuses, its locks, its bytes on disk, and its invariants", dir)
		}
	}
}

func TestFilesAndFunctionsStaySmall(t *testing.T) {
	set, sources := parse(t)
	for _, s := range sources {
		if lines := set.File(s.file.Pos()).LineCount(); lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: split it by idea", s.path, lines, maxFileLines)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > maxFuncLines {
				t.Errorf("%s: %s has %d lines, more than %d: give its parts names", s.path, f.Name.Name, lines, maxFuncLines)
			}
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	set, sources := parse(t)
	for _, s := range sources {
		if !s.test && !within(folder(s.path), "test") {
			continue
		}
		eachCall(s.file, func(pkg, name string, at token.Pos) {
			if pkg == "time" && name == "Sleep" {
				t.Errorf("%s: a test sleeps. Wait on the condition, or use testing/synctest", set.Position(at))
			}
		})
	}
}

func TestDecisionCodeHasNoClockAndNoIO(t *testing.T) {
	set, sources := parse(t)
	for _, s := range sources {
		if s.test || !slices.ContainsFunc(decisions, func(d string) bool { return within(s.path, d) }) {
			continue
		}
		for _, spec := range s.file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if slices.Contains(notInDecisions, path) {
				t.Errorf("%s imports %s; decision code takes what it needs as arguments and returns effects", s.path, path)
			}
		}
		eachCall(s.file, func(pkg, name string, at token.Pos) {
			if slices.Contains(notCalled[pkg], name) {
				t.Errorf("%s: %s.%s in decision code; take `now` as an argument, return lines to log as effects", set.Position(at), pkg, name)
			}
		})
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: a goroutine in decision code; its caller runs things", set.Position(g.Pos()))
			}
			return true
		})
	}
}

func eachCall(f *ast.File, visit func(pkg, name string, at token.Pos)) {
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Obj == nil {
				visit(id.Name, sel.Sel.Name, sel.Pos())
			}
		}
		return true
	})
}
