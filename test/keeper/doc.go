// Package keeper measures the embedded ZooKeeper server against Apache
// ZooKeeper 3.8: one random script, step by step on both, equal answers. It
// also kills the server amid writes and counts what was answered.
//
// Each test prints the seed of its random script; BARNABAS_SEED repeats one,
// BARNABAS_STEPS sets the number of operations.
package keeper
