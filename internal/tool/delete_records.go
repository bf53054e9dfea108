package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// deleteRecordsCommand is kafka-delete-records
// (org.apache.kafka.tools.DeleteRecordsCommand).
func deleteRecordsCommand() *Command {
	return &Command{
		Name: "delete-records", Script: "kafka-delete-records", Short: "Delete the records of partitions below an offset",
		Purpose: "This tool helps to delete records of the given partitions down to the specified offset.",
		Long:    "To delete all records of a topic, \"barnabas topics --empty\" needs no file.",
		Example: []string{"barnabas delete-records --bootstrap-server localhost:9092 --offset-json-file offsets.json"},
		Options: []Option{
			{Name: "bootstrap-server", Arg: "String: server(s) to use for bootstrapping", Required: true, Text: "The server to connect to."},
			commandConfig,
			{Name: "offset-json-file", Arg: "String: Offset json file path", Required: true, Text: "The JSON file with offset per partition. The format to use is:\n{\"partitions\": [{\"topic\": \"foo\", \"partition\": 1, \"offset\": 1}], \"version\":1}"},
			yes,
		},
		Run: runDeleteRecords,
	}
}

func runDeleteRecords(c *Call) error {
	if err := c.Args.needs("bootstrap-server", "offset-json-file"); err != nil {
		return err
	}
	offsets, err := readOffsets(c.Args.Text("offset-json-file"))
	if err != nil {
		return err
	}
	if err := c.confirm("This deletes records."); err != nil {
		return err
	}
	return c.withAdmin(func(admin *kadm.Client, _ *kgo.Client) error {
		if !c.JSON {
			fmt.Fprintln(c.Out, "Executing records delete operation")
		}
		done, err := admin.DeleteRecords(c.Context, offsets)
		if err != nil && !shardErrors(err) {
			return err
		}
		results := done.Sorted()
		known := map[string]bool{}
		for _, r := range results {
			known[fmt.Sprint(r.Topic, "-", r.Partition)] = true
		}
		for _, o := range offsets.Sorted() {
			if !known[fmt.Sprint(o.Topic, "-", o.Partition)] {
				results = append(results, kadm.DeleteRecordsResponse{Topic: o.Topic, Partition: o.Partition, Err: kerr.UnknownTopicOrPartition})
			}
		}
		if c.JSON {
			return c.printDeleted(results)
		}
		fmt.Fprintln(c.Out, "Records delete operation completed:")
		for _, r := range results {
			if r.Err == nil {
				fmt.Fprintf(c.Out, "partition: %s-%d\tlow_watermark: %d\n", r.Topic, r.Partition, r.LowWatermark)
			} else {
				fmt.Fprintf(c.Out, "partition: %s-%d\terror: %s\n", r.Topic, r.Partition, withClass(r.Err))
			}
		}
		return nil
	})
}

func (c *Call) printDeleted(results []kadm.DeleteRecordsResponse) error {
	list := []map[string]any{}
	for _, r := range results {
		one := map[string]any{"topic": r.Topic, "partition": r.Partition}
		if r.Err == nil {
			one["lowWatermark"] = r.LowWatermark
		} else {
			one["error"] = text(r.Err)
		}
		list = append(list, one)
	}
	return c.printJSON(map[string]any{"partitions": list})
}

// readOffsets reads --offset-json-file.
func readOffsets(file string) (kadm.Offsets, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, says("Unable to read file %s", file)
	}
	var doc struct {
		Version    *int `json:"version"`
		Partitions *[]struct {
			Topic     *string `json:"topic"`
			Partition *int32  `json:"partition"`
			Offset    *int64  `json:"offset"`
		} `json:"partitions"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, terse("The input string is not a valid JSON")
	}
	if doc.Version != nil && *doc.Version != 1 {
		return nil, terse("Not supported version field value %d", *doc.Version)
	}
	if doc.Partitions == nil {
		return nil, terse("Missing partitions field")
	}
	offsets := kadm.Offsets{}
	var twice []string
	for _, p := range *doc.Partitions {
		if p.Topic == nil || p.Partition == nil || p.Offset == nil {
			return nil, terse("Each partition needs topic, partition and offset")
		}
		if _, ok := offsets.Lookup(*p.Topic, *p.Partition); ok {
			twice = append(twice, fmt.Sprint(*p.Topic, "-", *p.Partition))
		}
		offsets.AddOffset(*p.Topic, *p.Partition, *p.Offset, -1)
	}
	if twice != nil {
		slices.Sort(twice)
		return nil, terse("Offset json file contains duplicate topic partitions: %s", strings.Join(slices.Compact(twice), ","))
	}
	return offsets, nil
}
