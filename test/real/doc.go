// Package real starts the real programs that the tests measure Barnabas
// against: Apache ZooKeeper 3.8, Apache Kafka of four eras, their tools, kcat,
// Python clients, and the barnabas binary itself.
//
// Everything runs on 127.0.0.1, on free ports, in temporary folders, and ends
// with the test that started it. The programs come from the folder that
// test/setup fills. A test whose program is missing is skipped with the
// program's name; with CI set it fails.
package real
