import java.util.*;
import kafka.consumer.*;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.message.MessageAndMetadata;

/**
 * The ZooKeeper consumer of 0.8, printing "stream topic partition offset value" of each record.
 * Args: "topics" or "white" or "black", then topic or filter, number of streams, then properties as name=value.
 */
public class Connector {
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        for (int i = 3; i < args.length; i++) { int at = args[i].indexOf('='); p.put(args[i].substring(0, at), args[i].substring(at + 1)); }
        ConsumerConnector c = Consumer.createJavaConsumerConnector(new ConsumerConfig(p));
        int n = Integer.parseInt(args[2]);
        List<KafkaStream<byte[], byte[]>> streams;
        if (args[0].equals("topics")) streams = c.createMessageStreams(Collections.singletonMap(args[1], n)).get(args[1]);
        else streams = c.createMessageStreamsByFilter(args[0].equals("white") ? new Whitelist(args[1]) : new Blacklist(args[1]), n);
        Runtime.getRuntime().addShutdownHook(new Thread(c::shutdown));
        System.out.println("ready");
        int i = 0;
        for (KafkaStream<byte[], byte[]> s : streams) {
            int number = i++;
            new Thread(() -> {
                ConsumerIterator<byte[], byte[]> it = s.iterator();
                while (it.hasNext()) {
                    MessageAndMetadata<byte[], byte[]> m = it.next();
                    System.out.println(number + " " + m.topic() + " " + m.partition() + " " + m.offset() + " " + new String(m.message()));
                }
            }).start();
        }
    }
}
