import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Prints the records of partitions from their starts to their ends, a line with tabs for each: topic,
 * partition, offset, timestamp, key, value, then name and value of each header; bytes as base64.
 *
 * <p>Takes ADDRESS, LEVEL, SILENCE_MS and TOPIC:PARTITION,... for each consumer. A partition whose
 * consumer throws, or gets nothing for SILENCE_MS before the end, has a line of the word "stopped",
 * topic, partition, position and why.
 */
public final class ReadRecords {
    public static void main(String[] given) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (String places : Arrays.asList(given).subList(3, given.length)) {
            // Not by submit, which keeps errors for itself.
            pool.execute(() -> System.out.print(read(given[0], given[1], Long.parseLong(given[2]), places)));
        }
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.HOURS);
        System.out.flush();
    }

    private static String read(String address, String level, long silenceMs, String places) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("isolation.level", level);
        settings.put("max.partition.fetch.bytes", "20000");
        StringBuilder lines = new StringBuilder();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            List<TopicPartition> open = new ArrayList<>();
            for (String place : places.split(",")) {
                int colon = place.lastIndexOf(':');
                int number = Integer.parseInt(place.substring(colon + 1));
                open.add(new TopicPartition(place.substring(0, colon), number));
            }
            consumer.assign(open);
            consumer.seekToBeginning(open);
            Map<TopicPartition, Long> ends = consumer.endOffsets(open);
            String why = "silence";
            try {
                long last = System.nanoTime();
                while (System.nanoTime() - last < silenceMs * 1_000_000L) {
                    open.removeIf(place -> consumer.position(place) >= ends.get(place));
                    if (open.isEmpty()) {
                        break;
                    }
                    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(200))) {
                        add(lines, each);
                        last = System.nanoTime();
                    }
                }
            } catch (KafkaException error) {
                why = error.toString().lines().findFirst().get();
            }
            for (TopicPartition each : open) {
                String place = each.topic() + "\t" + each.partition() + "\t" + consumer.position(each);
                lines.append("stopped\t").append(place).append('\t').append(why).append('\n');
            }
        }
        return lines.toString();
    }

    private static void add(StringBuilder lines, ConsumerRecord<byte[], byte[]> record) {
        lines.append(record.topic()).append('\t').append(record.partition());
        lines.append('\t').append(record.offset()).append('\t').append(record.timestamp());
        lines.append('\t').append(text(record.key())).append('\t').append(text(record.value()));
        for (Header header : record.headers()) {
            lines.append('\t').append(text(header.key().getBytes(StandardCharsets.UTF_8)));
            lines.append('\t').append(text(header.value()));
        }
        lines.append('\n');
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "null" : "=" + Base64.getEncoder().encodeToString(bytes);
    }
}
