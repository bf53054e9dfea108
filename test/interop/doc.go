// Package interop runs the barnabas binary against the programs that its users
// run: Kafka's own tools of four releases, kcat, Python, Go and Java clients,
// and Apache ZooKeeper. Nothing here is simulated.
package interop
