"""A member of a group: member.py LIBRARY BOOTSTRAP GROUP TOPIC. Prints each record; SIGTERM has it leave."""
import signal
import sys

library, bootstrap, group, topic = sys.argv[1:5]
running = True


def stop(*_):
    global running
    running = False


signal.signal(signal.SIGTERM, stop)
if library == "kafka-python":
    from kafka import KafkaConsumer

    c = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest",
                      session_timeout_ms=6000, heartbeat_interval_ms=500, auto_commit_interval_ms=200)
    while running:
        for records in c.poll(timeout_ms=200).values():
            for r in records:
                print(r.value.decode(), flush=True)
    c.close()
elif library == "aiokafka":
    import asyncio

    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    async def consume():
        c = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest",
                             session_timeout_ms=6000, heartbeat_interval_ms=500, auto_commit_interval_ms=200,
                             partition_assignment_strategy=(RangePartitionAssignor, RoundRobinPartitionAssignor))
        await c.start()
        while running:
            for records in (await c.getmany(timeout_ms=200)).values():
                for r in records:
                    print(r.value.decode(), flush=True)
        await c.stop()

    asyncio.run(consume())
elif library == "confluent-kafka-consumer":  # the protocol of KIP-848
    from confluent_kafka import Consumer

    c = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
                  "auto.commit.interval.ms": 200, "group.protocol": "consumer"})
    c.subscribe([topic])
    while running:
        m = c.poll(0.2)
        if m and not m.error():
            print(m.value().decode(), flush=True)
        elif m:
            print(m.error(), file=sys.stderr, flush=True)
    c.close()
else:
    from confluent_kafka import Consumer

    c = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
                  "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "auto.commit.interval.ms": 200,
                  "partition.assignment.strategy": "cooperative-sticky"})
    c.subscribe([topic])
    while running:
        m = c.poll(0.2)
        if m and not m.error():
            print(m.value().decode(), flush=True)
    c.close()
