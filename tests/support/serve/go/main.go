// Reads partitions to their ends by a client written in Go, and prints a line of JSON per record.
//
//	go_clients franz|sarama ADDRESS LEVEL TOPIC:PARTITION:START:END...
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

type header struct{ Key, Value []byte }

type record struct {
	Topic     string
	Partition int32
	Offset    int64
	TimeMs    int64
	Key       []byte
	Value     []byte
	Headers   []header
}

type place struct {
	topic      string
	partition  int32
	start, end int64
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	client, address, level := os.Args[1], os.Args[2], os.Args[3]
	var places []place
	for _, text := range os.Args[4:] {
		parts := strings.Split(text, ":")
		var numbers [3]int64
		for index, part := range parts[1:] {
			number, err := strconv.ParseInt(part, 10, 64)
			must(err)
			numbers[index] = number
		}
		places = append(places, place{parts[0], int32(numbers[0]), numbers[1], numbers[2]})
	}
	lines := json.NewEncoder(os.Stdout)
	emit := func(found record) { must(lines.Encode(found)) }
	if client == "franz" {
		franz(address, level == "read_committed", places, emit)
	} else {
		useSarama(address, level == "read_committed", places, emit)
	}
}

// franz ends when nothing has come for two seconds: control records do not show.
func franz(address string, committed bool, places []place, emit func(record)) {
	starts := map[string]map[int32]kgo.Offset{}
	for _, each := range places {
		if starts[each.topic] == nil {
			starts[each.topic] = map[int32]kgo.Offset{}
		}
		starts[each.topic][each.partition] = kgo.NewOffset().At(each.start)
	}
	isolation := kgo.ReadUncommitted()
	if committed {
		isolation = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(starts),
		kgo.FetchIsolationLevel(isolation), kgo.FetchMaxPartitionBytes(20000))
	must(err)
	defer client.Close()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		fetches := client.PollFetches(ctx)
		ended := ctx.Err() != nil
		cancel()
		if ended && fetches.NumRecords() == 0 {
			return
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			if !ended {
				must(fmt.Errorf("%s-%d: %w", topic, partition, err))
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			found := record{r.Topic, r.Partition, r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, nil}
			for _, each := range r.Headers {
				found.Headers = append(found.Headers, header{[]byte(each.Key), each.Value})
			}
			emit(found)
		})
	}
}

func useSarama(address string, committed bool, places []place, emit func(record)) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Consumer.Fetch.Default = 20000
	config.Consumer.Return.Errors = true
	if committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer([]string{address}, config)
	must(err)
	for _, each := range places {
		partition, err := consumer.ConsumePartition(each.topic, each.partition, each.start)
		must(err)
		for ended := false; !ended; {
			select {
			case m := <-partition.Messages():
				found := record{m.Topic, m.Partition, m.Offset, m.Timestamp.UnixMilli(), m.Key, m.Value, nil}
				for _, h := range m.Headers {
					found.Headers = append(found.Headers, header{h.Key, h.Value})
				}
				emit(found)
				ended = m.Offset >= each.end-1
			case err := <-partition.Errors():
				must(err)
			case <-time.After(700 * time.Millisecond):
				ended = true
			}
		}
		must(partition.Close())
	}
}
