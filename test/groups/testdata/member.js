// A member of a group that prints what it reads, and leaves at SIGTERM:
// member.js BROKER GROUP TOPIC
const {Kafka, logLevel} = require("kafkajs");
const [broker, groupId, topic] = process.argv.slice(2);
const consumer = new Kafka({brokers: [broker], logLevel: logLevel.ERROR}).consumer({
  groupId, sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 10000, maxWaitTimeInMs: 500,
});
process.on("SIGTERM", async () => {
  await consumer.disconnect();
  process.exit(0);
});
(async () => {
  await consumer.connect();
  await consumer.subscribe({topics: [topic], fromBeginning: true});
  await consumer.run({
    autoCommitInterval: 200,
    eachMessage: async ({message}) => console.log(message.value.toString()),
  });
})();
