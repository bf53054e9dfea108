// Command count reads the output of "go test -json", prints what failed and
// why, names what was skipped, and ends with one line of counts:
//
//	N passed, N failed, N skipped
//
// Its exit status is 1 if anything failed, and, with CI set, if anything was
// skipped: a test with real programs that does not run proves nothing. Tests
// and subtests count alike; a package that does not build counts as one failure.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

func main() {
	var passed, failed, skipped int
	printed := map[string][]string{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		name := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			if e.Action == "build-output" {
				fmt.Print(e.Output)
			}
			if len(printed[name]) < 2000 {
				printed[name] = append(printed[name], e.Output)
			}
		case "pass":
			if e.Test != "" {
				passed++
			} else {
				fmt.Printf("ok    %s %.1fs\n", e.Package, e.Elapsed)
			}
			delete(printed, name)
		case "skip":
			if e.Test != "" {
				skipped++
				fmt.Printf("SKIP  %s\n%s", name, strings.Join(printed[name], ""))
			}
			delete(printed, name)
		case "fail":
			if e.Test != "" || strings.Contains(strings.Join(printed[name], ""), "[build failed]") || !packageFailedBefore(e.Package) {
				failed++
			}
			noteFailure(e.Package)
			fmt.Printf("FAIL  %s\n%s", name, strings.Join(printed[name], ""))
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Println("count:", err)
		failed++
	}
	if os.Getenv("CI") != "" && skipped > 0 {
		fmt.Println("a skipped test is a failure in CI")
		failed, skipped = failed+skipped, 0
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}

var failures = map[string]bool{}

func noteFailure(pkg string)              { failures[pkg] = true }
func packageFailedBefore(pkg string) bool { return failures[pkg] }
