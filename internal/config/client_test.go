package config

import "testing"

func TestEntityProperties(t *testing.T) {
	const credential = "salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096"
	tests := []struct {
		kind EntityKind
		key  string
		text string
		kept bool
	}{
		{Users, "producer_byte_rate", "1024", true},
		{Users, "producer_byte_rate", "1024.5", false},
		{Users, "request_percentage", "12.5", true},
		{Clients, "consumer_byte_rate", "abc", false},
		{Clients, "controller_mutation_rate", "0.5", true},
		{Clients, "SCRAM-SHA-256", credential, false},
		{Users, "SCRAM-SHA-256", credential, true},
		{Users, "SCRAM-SHA-512", "iterations=4096,salt=c2FsdA==,server_key=a2V5,stored_key=a2V5", true},
		{Users, "SCRAM-SHA-512", "salt=c2FsdA==", false},
		{Users, "SCRAM-SHA-512", "salt=!,stored_key=a2V5,server_key=a2V5,iterations=4096", false},
		{Users, "SCRAM-SHA-512", "salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=0", false},
		{Users, "connection_creation_rate", "5", false},
		{IPs, "connection_creation_rate", "5", true},
		{IPs, "connection_creation_rate", "-1", false},
		{IPs, "producer_byte_rate", "5", false},
	}
	for _, test := range tests {
		err := ValidateEntity(test.kind, map[string]string{test.key: test.text})
		if (err == nil) != test.kept {
			t.Errorf("%s=%s of kind %d: got %v", test.key, test.text, test.kind, err)
		}
	}
	for name, want := range map[string]bool{"127.0.0.1": true, "::1": true, "<default>": true, "nohost!": false} {
		if ValidIPEntity(name) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
}
