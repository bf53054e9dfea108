package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// getters are the methods of Broker that take a key, and the types they are for.
var getters = map[string][]Type{
	"Bool":     {TypeBoolean},
	"Int":      {TypeInt, TypeShort, TypeLong},
	"Int16":    {TypeShort},
	"Int32":    {TypeInt, TypeShort},
	"Int64":    {TypeInt, TypeShort, TypeLong},
	"Float64":  {TypeDouble},
	"String":   {TypeString, TypeClass, TypePassword},
	"List":     {TypeList},
	"Duration": {TypeInt, TypeShort, TypeLong},
}

var keyShape = regexp.MustCompile(`^[a-z]+(\.[a-zA-Z]+)+$`)

// A getter panics for a key that is not defined; so no key in the program may be
// misspelt. Every call in the module that looks like a getter's is checked: a
// method of that name with one argument, a literal that looks like a key.
func TestKeysInTheProgramAreDefined(t *testing.T) {
	count := 0
	files := token.NewFileSet()
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // a file that has just gone
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".git") || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil // the compiler has more to say about it
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			literal, isLiteral := call.Args[0].(*ast.BasicLit)
			if !ok || !isLiteral || literal.Kind != token.STRING || getters[method.Sel.Name] == nil {
				return true
			}
			key, _ := strconv.Unquote(literal.Value)
			if !keyShape.MatchString(key) {
				return true
			}
			count++
			checkUse(t, files.Position(call.Pos()).String(), method.Sel.Name, key)
			return true
		})
		return nil
	})
	if err != nil || count < 20 {
		t.Errorf("only %d uses found, %v", count, err)
	}
}

func checkUse(t *testing.T, where, getter, key string) {
	t.Helper()
	d := brokerTable.get(key)
	if d == nil {
		t.Errorf("%s: no broker property is called %s", where, key)
		return
	}
	for _, typ := range getters[getter] {
		if d.Type == typ {
			return
		}
	}
	t.Errorf("%s: %s is of type %s: %s is not for it", where, key, d.Type, getter)
}
