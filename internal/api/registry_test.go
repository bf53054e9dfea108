package api

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var update = flag.Bool("update", false, "write docs/apis.md anew")

func TestAPIsPage(t *testing.T) {
	const file = "../../docs/apis.md"
	page := []byte(Page())
	if *update {
		if err := os.WriteFile(file, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(have, page) {
		t.Fatalf("%s is not what the registry says (%v): go test ./internal/api -run TestAPIsPage -update", file, err)
	}
}

func TestEveryEntryOfTheRegistryIsWhole(t *testing.T) {
	for _, a := range All() {
		request := kmsg.RequestForKey(a.Key)
		switch {
		case request == nil || a.Max > request.MaxVersion():
			t.Errorf("%s: version %d can't be decoded", a.Name, a.Max)
		case a.Min < 0 || a.Max < a.Min || a.Handle == nil || a.Expansion < 0:
			t.Errorf("%s: %+v", a.Name, a)
		case len(a.Versions) != int(a.Max-a.Min)+1:
			t.Errorf("%s: %d versions, %d texts", a.Name, a.Max-a.Min+1, len(a.Versions))
		}
	}
	if Lookup(-1) != nil || Lookup(999) != nil || Lookup(127) != nil {
		t.Error("an API out of nowhere")
	}
}
