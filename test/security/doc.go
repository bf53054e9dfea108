// Package security shows that real clients and real brokers authenticate to
// Barnabas, and Barnabas to them, and what they say when a password is wrong.
package security
