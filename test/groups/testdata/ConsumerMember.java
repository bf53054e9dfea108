import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a group of the consumer protocol that prints what it reads, and leaves at SIGTERM:
 * BOOTSTRAP GROUP TOPIC [PROPERTY=VALUE]... A topic that begins with a slash is a regular expression.
 */
public class ConsumerMember {
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("group.id", args[1]);
        p.put("group.protocol", "consumer");
        p.put("auto.offset.reset", "earliest");
        p.put("auto.commit.interval.ms", "200");
        p.put("metadata.max.age.ms", "1000");
        for (int i = 3; i < args.length; i++) {
            String[] property = args[i].split("=", 2);
            p.put(property[0], property[1]);
        }
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                closed.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        try {
            if (args[2].startsWith("/")) {
                consumer.subscribe(new SubscriptionPattern(args[2].substring(1)));
            } else {
                consumer.subscribe(List.of(args[2]));
            }
            while (true) {
                try {
                    consumer.poll(Duration.ofMillis(200)).forEach(r -> System.out.println(r.value()));
                } catch (UnknownMemberIdException e) {
                    // Fenced while it asked for its offsets: it joins again by itself.
                } catch (IllegalStateException e) {
                    // A consumer of 4.1.0 that is fenced drops its partitions while poll looks at them.
                    if (!e.getMessage().startsWith("No current assignment")) {
                        throw e;
                    }
                }
                System.out.flush();
            }
        } catch (WakeupException e) {
            // leaves
        } catch (RuntimeException e) {
            System.err.println("ended by " + e);
        } finally {
            consumer.close();
            closed.countDown();
        }
    }
}
