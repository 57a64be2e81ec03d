// Prints the records that kafkajs reads as a member of a group: a line of JSON for each, keys and
// values as base64. Takes an object: address, level, and places of topic, partition, last offset.
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require("kafkajs");
const fzstd = require("fzstd");
const lz4 = require("lz4js");
const snappy = require("kafkajs-snappy");

const codec = (decompress) => () => ({ decompress: async (data) => Buffer.from(decompress(data)) });
CompressionCodecs[CompressionTypes.LZ4] = codec(lz4.decompress);
CompressionCodecs[CompressionTypes.Snappy] = snappy;
CompressionCodecs[CompressionTypes.ZSTD] = codec(fzstd.decompress);

// After the last record that is expected, what comes too much has this time to show itself.
const SETTLE_MS = 300;

const { address, level, places } = JSON.parse(process.argv[2]);
const lasts = new Map(places.map(([topic, number, last]) => [`${topic}-${number}`, BigInt(last)]));
const topics = [...new Set(places.map(([topic]) => topic))];

const encoded = (bytes) => (bytes === null ? null : bytes.toString("base64"));

function line(topic, partition, message) {
  const headers = Object.entries(message.headers).flatMap(([name, values]) =>
    [values].flat().map((value) => [name, encoded(value)]),
  );
  const { offset, timestamp, key, value } = message;
  return JSON.stringify([topic, partition, offset, timestamp, encoded(key), encoded(value), headers]);
}

async function main() {
  const kafka = new Kafka({ brokers: [address], logLevel: logLevel.ERROR });
  const consumer = kafka.consumer({
    groupId: `kafkajs-${level}`,
    readUncommitted: level === "read_uncommitted",
    maxBytesPerPartition: 20000,
  });
  await consumer.connect();
  await consumer.subscribe({ topics, fromBeginning: true });
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    const eachMessage = async ({ topic, partition, message }) => {
      const place = `${topic}-${partition}`;
      console.log(line(topic, partition, message));
      if (BigInt(message.offset) >= (lasts.get(place) ?? 0n)) {
        lasts.delete(place);
      }
      if (lasts.size === 0) {
        setTimeout(resolve, SETTLE_MS);
      }
    };
    consumer.run({ autoCommit: false, eachMessage }).catch(reject);
  });
  await consumer.disconnect();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
