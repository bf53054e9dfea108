// Package zookeeper holds the tests of our ZooKeeper client against servers:
// each case runs on Apache ZooKeeper 3.8 and on the embedded server. The
// client reaches them through a proxy that can cut its connections.
package zookeeper
