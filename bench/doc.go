// Package bench measures Barnabas beside Apache Kafka 3.9.1 on the same machine
// in the same run, turn by turn, and prints medians and ratios. "make bench"
// runs it. Its figures are for reading: nothing passes or fails on time.
//
// CPU is what the broker's process used (user and system), the clients run
// beside it. The load comes from franz-go for both.
package bench
