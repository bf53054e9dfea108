import java.util.*;
import kafka.consumer.*;
import kafka.javaapi.consumer.ConsumerConnector;

/**
 * Members of a group of 0.8's ZooKeeper consumer, in one process.
 * Args: topic, number of members, then properties as name=value. It starts all but one, prints "ready", and for each line on standard
 * input lets the last one join, or leave when it is there.
 */
public class Members {
    static ConsumerConnector join(String topic, String id, Properties p) {
        Properties own = new Properties();
        own.putAll(p);
        own.put("consumer.id", id);
        ConsumerConnector c = Consumer.createJavaConsumerConnector(new ConsumerConfig(own));
        c.createMessageStreams(Collections.singletonMap(topic, 1));
        return c;
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        for (int i = 2; i < args.length; i++) { int at = args[i].indexOf('='); p.put(args[i].substring(0, at), args[i].substring(at + 1)); }
        int n = Integer.parseInt(args[1]);
        for (int i = 1; i < n; i++) join(args[0], "m" + i, p);
        System.out.println("ready");
        Scanner in = new Scanner(System.in);
        ConsumerConnector last = null;
        while (in.hasNextLine()) {
            in.nextLine();
            if (last == null) last = join(args[0], "m" + n, p);
            else { last.shutdown(); last = null; }
            System.out.println("done");
        }
        System.exit(0);
    }
}
