package config

// Warning is something in the properties that is not fatal, such as a key that
// no definition has.
type Warning struct {
	File string // "" for an override
	Line int    // from 1; 0 for an override
	Key  string
	Text string
}

// Load reads server.properties as java.util.Properties would, lets overrides
// ("name=value", the last wins) replace what the file says, and checks all of
// it. An empty path means no file. The error names every bad property with its
// file and line.
func Load(path string, overrides []string) (*Broker, []Warning, error) { panic("todo") }
