package api

import (
	"fmt"
	"strings"
)

//go:generate go test . -run TestAPIsPage -update

// Page returns docs/apis.md.
func Page() string {
	var w strings.Builder
	w.WriteString(`# Requests that are served

This page is made from the registry in ` + "`internal/api`" + `; do not edit it. The same registry feeds ApiVersions: what
is not here is not advertised, and a request for it closes the connection.

| key | request | versions |
|---|---|---|
`)
	for _, a := range All() {
		fmt.Fprintf(&w, "| %d | [%s](#%s) | %s |\n", a.Key, a.Name, strings.ToLower(a.Name), versionRange(a))
	}
	for _, a := range All() {
		fmt.Fprintf(&w, "\n## %s\n\n", a.Name)
		for i, added := range a.Versions {
			fmt.Fprintf(&w, "- v%d: %s\n", int(a.Min)+i, added)
		}
	}
	return w.String()
}

func versionRange(a *API) string {
	if a.Min == a.Max {
		return fmt.Sprint(a.Min)
	}
	return fmt.Sprintf("%d-%d", a.Min, a.Max)
}
