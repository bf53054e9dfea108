// Package keeper measures the embedded ZooKeeper server against Apache
// ZooKeeper 3.8: one random script, step by step on both, equal answers; the
// recipes and ways of its clients; moves from one to the other, with brokers
// on them. It also kills the server amid writes, cuts its power and fills it
// up, and counts what was answered.
//
// Each test prints the seed of its random script; BARNABAS_SEED repeats one,
// BARNABAS_STEPS sets the number of operations.
package keeper
