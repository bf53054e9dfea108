import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.*;

/** Sends each line of a file as a key with the Java producer (0.8.2 to today): args are broker, topic, file. */
public class JavaProducer {
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaProducer<String, String> producer = new KafkaProducer<>(p);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String key : Files.readAllLines(Paths.get(args[2]), StandardCharsets.UTF_8))
            sent.add(producer.send(new ProducerRecord<>(args[1], key, key)));
        for (Future<RecordMetadata> f : sent) f.get();
        producer.close();
    }
}
