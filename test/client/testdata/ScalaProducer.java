import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import kafka.javaapi.producer.Producer;
import kafka.producer.*;

/** Sends each line of a file as a key with the producer of 0.8: args are broker, topic, file, "string" or "bytes". */
public class ScalaProducer {
    public static void main(String[] args) throws Exception {
        boolean bytes = args[3].equals("bytes");
        Properties p = new Properties();
        p.put("metadata.broker.list", args[0]);
        p.put("serializer.class", bytes ? "kafka.serializer.DefaultEncoder" : "kafka.serializer.StringEncoder");
        p.put("request.required.acks", "1");
        if (bytes) p.put("partitioner.class", "kafka.producer.ByteArrayPartitioner");
        Producer<Object, Object> producer = new Producer<>(new ProducerConfig(p));
        List<KeyedMessage<Object, Object>> batch = new ArrayList<>();
        for (String key : Files.readAllLines(Paths.get(args[2]), StandardCharsets.UTF_8)) {
            Object k = bytes ? key.getBytes(StandardCharsets.UTF_8) : key;
            batch.add(new KeyedMessage<>(args[1], k, k));
            if (batch.size() == 500) { producer.send(batch); batch.clear(); }
        }
        producer.send(batch);
        producer.close();
    }
}
