// Package record checks what internal/record writes against Kafka's own classes:
// kafka-clients 3.9.1 for each format, and the message classes of 0.8.2.2 for
// v0. (What Kafka writes is checked in internal/record itself, with fixtures.)
package record
