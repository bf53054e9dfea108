// Package tools holds no code, only tests of the subcommands that stand for
// Kafka's scripts.
//
// testdata/*.golden are sessions of command lines with what the scripts of
// Apache Kafka 3.9.1 answered; ours must answer the same, on an Apache Kafka
// broker and on a barnabas broker; those named cluster-* on three brokers of
// either, and those named 2.8.2-* are of that release. "go test -tags record -run Record" runs Kafka's scripts and writes the
// files anew (those whose name holds BARNABAS_RECORD, if it is set). In a
// session a line that begins with
//
//   - "#" is a comment,
//   - "$" is a command line: the subcommand's name and its arguments, where @B
//     is the broker and @D a folder of this session's files; with "$~" the
//     lines may come in any order, with "$=" only the words count, with "$+" the
//     lines are those of standard error too, and the events of watches last,
//   - "<" is a line of its standard input,
//   - "@ NAME text" makes a file in @D, with text and the lines after it that
//     begin with "+",
//   - "% stop N" stops broker N, "% start N" starts it again and waits until it
//     is in all its in-sync replicas, "% moved" waits until no partition moves,
//     "% settle" until every broker knows a leader of each,
//     "% fill TOPIC" writes 5 MB to it,
//   - "|" is a line that Kafka's script wrote to standard output,
//   - "!" is what the first line on standard error says,
//   - "?" is the exit status, if it is not 0.
package tools
