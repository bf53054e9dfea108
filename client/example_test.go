package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"barnabas/client"
)

// One record after another: each is acknowledged before Send returns, or comes
// back after three retries.
func ExampleProducer_Send() {
	producer, err := client.NewProducer(client.Brokers("localhost:9092"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer producer.Close(ctx)
	err = producer.Send(ctx, &client.Record{Topic: "orders", Key: "customer-7", Value: "two loaves"})
	var failed *client.SendError
	if errors.As(err, &failed) {
		for _, r := range failed.Records() {
			fmt.Println("to be stored elsewhere:", r.Value)
		}
	}
}

// A queue of at most 10,000 records; when it is full, Send waits for 50 ms and
// then drops.
func ExampleProducer_SendAsync() {
	producer, err := client.NewProducer(
		client.Brokers("localhost:9092"),
		client.SendMode(client.Async),
		client.Queue(10000, 32<<20),
		client.Batches(200, 1<<20, 5*time.Millisecond),
		client.WhenFull(50*time.Millisecond),
		client.OnDropped(func(r *client.Record) { log.Println("dropped:", r.Value) }),
	)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	err = producer.SendAsync(ctx, &client.Record{Topic: "clicks", Value: "home"}, func(r client.Result) {
		if r.Err != nil {
			log.Println(r.Record.Value, r.Err)
		}
	})
	if err != nil {
		log.Println(err)
	}
	if err := producer.Close(ctx); err != nil {
		log.Println(err)
	}
}

// A producer.properties of 0.8.
func ExampleProducerProperties() {
	file, err := os.Open("producer.properties")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	properties, err := client.ReadProperties(file)
	if err != nil {
		log.Fatal(err)
	}
	producer, err := client.NewProducer(client.ProducerProperties(properties))
	if err != nil {
		log.Fatal(err)
	}
	defer producer.Close(context.Background())
}

// Two streams of a topic, read in two goroutines, in a group that ZooKeeper
// coordinates.
func ExampleConsumer_Streams() {
	ctx := context.Background()
	consumer, err := client.NewConsumer(ctx, client.ZooKeeper("localhost:2181"), client.Group("bakery"), client.OffsetReset(client.Smallest))
	if err != nil {
		log.Fatal(err)
	}
	defer consumer.Close()
	streams, err := consumer.Streams(ctx, map[string]int{"orders": 2})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range streams["orders"] {
		go func() {
			for m, err := range s.All(ctx) {
				if err != nil {
					return
				}
				fmt.Println(m.Partition, m.Offset, string(m.Value))
			}
		}()
	}
	select {} // until the program ends
}

// All topics that begin with "orders", also those to come.
func ExampleConsumer_FilterStreams() {
	ctx := context.Background()
	consumer, err := client.NewConsumer(ctx, client.ZooKeeper("localhost:2181"), client.Group("audit"))
	if err != nil {
		log.Fatal(err)
	}
	defer consumer.Close()
	filter, err := client.WhiteList("orders.*")
	if err != nil {
		log.Fatal(err)
	}
	streams, err := consumer.FilterStreams(ctx, filter, 1)
	if err != nil {
		log.Fatal(err)
	}
	m, err := streams[0].Next(ctx)
	fmt.Println(m.Topic, m.Offset, err)
}
