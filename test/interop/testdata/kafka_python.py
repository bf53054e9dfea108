"""produce|consume BOOTSTRAP TOPIC: one record a line of stdin, or of stdout.

produce sends the lines with each codec in turn, named by the key; consume
assigns partition 0 and reads to its end.
"""
import sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

mode, bootstrap, topic = sys.argv[1:4]
if mode == "produce":
    lines = sys.stdin.read().splitlines()
    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, acks="all", linger_ms=5)
        sent = [producer.send(topic, key=(codec or "none").encode(), value=l.encode(), partition=0) for l in lines]
        for s in sent:
            s.get(timeout=30)
        producer.close()
else:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=20000)
    tp = TopicPartition(topic, 0)
    consumer.assign([tp])
    end = consumer.end_offsets([tp])[tp]
    consumer.seek_to_beginning(tp)
    for record in consumer:
        print(f"{record.key.decode()}\t{record.value.decode()}")
        if record.offset + 1 >= end:
            break
    consumer.close()
