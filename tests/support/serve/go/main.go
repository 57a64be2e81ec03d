// Reads partitions to their last records by a client written in Go, and prints a line of JSON per record.
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

const readWithin, settle = 100 * time.Second, 500 * time.Millisecond

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
	found := make(chan record)
	if client == "franz" {
		go franz(address, level == "read_committed", places, found)
	} else {
		useSarama(address, level == "read_committed", places, found)
	}
	print(places, found)
}

// print ends after the last records of all places. What comes too much has a moment to show itself.
func print(places []place, found <-chan record) {
	type partition struct {
		topic  string
		number int32
	}
	ends := map[partition]int64{}
	for _, each := range places {
		ends[partition{each.topic, each.partition}] = each.end
	}
	lines := json.NewEncoder(os.Stdout)
	limit, settled := time.After(readWithin), make(<-chan time.Time)
	for {
		select {
		case r := <-found:
			must(lines.Encode(r))
			if end, isOpen := ends[partition{r.Topic, r.Partition}]; isOpen && r.Offset >= end-1 {
				delete(ends, partition{r.Topic, r.Partition})
				if len(ends) == 0 {
					settled = time.After(settle)
				}
			}
		case <-settled:
			return
		case <-limit:
			must(fmt.Errorf("not read to their ends within %s: %v", readWithin, ends))
		}
	}
}

func franz(address string, committed bool, places []place, found chan<- record) {
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
	for {
		fetches := client.PollFetches(context.Background())
		fetches.EachError(func(topic string, partition int32, err error) {
			must(fmt.Errorf("%s-%d: %w", topic, partition, err))
		})
		fetches.EachRecord(func(r *kgo.Record) {
			var headers []header
			for _, each := range r.Headers {
				headers = append(headers, header{[]byte(each.Key), each.Value})
			}
			timeMs := r.Timestamp.UnixMilli()
			found <- record{r.Topic, r.Partition, r.Offset, timeMs, r.Key, r.Value, headers}
		})
	}
}

func useSarama(address string, committed bool, places []place, found chan<- record) {
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
		go func() {
			for err := range partition.Errors() {
				must(err)
			}
		}()
		go func() {
			for m := range partition.Messages() {
				var headers []header
				for _, each := range m.Headers {
					headers = append(headers, header{each.Key, each.Value})
				}
				// It has no time for a record without one.
				timeMs := int64(-1)
				if !m.Timestamp.IsZero() {
					timeMs = m.Timestamp.UnixMilli()
				}
				found <- record{m.Topic, m.Partition, m.Offset, timeMs, m.Key, m.Value, headers}
			}
		}()
	}
}
