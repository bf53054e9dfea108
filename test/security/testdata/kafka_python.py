"""usage: kafka_python.py ADDRESS TOPIC MECHANISM USER PASSWORD: sends a record and reads the topic"""
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

address, topic, mechanism, user, password = sys.argv[1:]
security = dict(bootstrap_servers=address, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism,
                sasl_plain_username=user, sasl_plain_password=password)
producer = KafkaProducer(**security)
producer.send(topic, b"kafka-python " + mechanism.encode(), partition=0).get(timeout=30)
producer.close()
consumer = KafkaConsumer(auto_offset_reset="earliest", consumer_timeout_ms=15000, **security)
consumer.assign([TopicPartition(topic, 0)])
end = consumer.end_offsets([TopicPartition(topic, 0)])[TopicPartition(topic, 0)]
for record in consumer:
    print(record.value.decode())
    if record.offset + 1 >= end:
        break
