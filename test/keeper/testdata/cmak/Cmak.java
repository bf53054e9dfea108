import java.util.*;
import java.util.concurrent.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.cache.*;
import org.apache.curator.framework.recipes.locks.*;
import org.apache.curator.retry.*;
import org.apache.zookeeper.*;

/** What CMAK does with a cluster's ZooKeeper, on the same Curator (2.12) and client (3.4): its caches, its own nodes, and what it writes to manage topics. */
public class Cmak {
    static CuratorFramework zk;

    static void say(Object... what) {
        System.out.println(String.join(" ", Arrays.stream(what).map(String::valueOf).toList()));
    }

    static void until(String what, Callable<Boolean> ok) throws Exception {
        for (long end = System.nanoTime() + 60_000_000_000L; !ok.call(); Thread.sleep(20))
            if (System.nanoTime() > end) throw new Exception("waited for: " + what);
    }

    static String get(String path) throws Exception { return new String(zk.getData().forPath(path)); }

    static byte[] bytes(String s) { return s.getBytes(); }

    static String cached(TreeCache cache, String path) {
        ChildData d = cache.getCurrentData(path);
        return d == null || d.getData() == null ? "" : new String(d.getData());
    }

    public static void main(String[] args) throws Exception {
        int broker = Integer.parseInt(args[1]);
        zk = CuratorFrameworkFactory.newClient(args[0], 10000, 10000, new BoundedExponentialBackoffRetry(100, 1000, 10));
        zk.start();
        if (!zk.getZookeeperClient().blockUntilConnectedOrTimedOut()) throw new Exception("no connection");

        // KafkaManagerActor: its own cluster list, under a lock.
        zk.create().creatingParentsIfNeeded().forPath("/kafka-manager/configs/c", bytes("{\"name\":\"c\"}"));
        InterProcessSemaphoreMutex mutex = new InterProcessSemaphoreMutex(zk, "/kafka-manager/mutex");
        say("mutex", mutex.acquire(10, TimeUnit.SECONDS), new InterProcessSemaphoreMutex(zk, "/kafka-manager/mutex").acquire(200, TimeUnit.MILLISECONDS));
        PathChildrenCache clusters = new PathChildrenCache(zk, "/kafka-manager/configs", true);
        clusters.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        say("clusters", clusters.getCurrentData().size());

        // KafkaStateActor: what it caches of Kafka's.
        TreeCache topics = new TreeCache(zk, "/brokers/topics"), configs = new TreeCache(zk, "/config/topics"), consumers = new TreeCache(zk, "/consumers");
        PathChildrenCache brokers = new PathChildrenCache(zk, "/brokers/ids", true), deletes = new PathChildrenCache(zk, "/admin/delete_topics", true);
        TreeCache reassigns = new TreeCache(zk, "/admin/reassign_partitions"), elections = new TreeCache(zk, "/admin/preferred_replica_election");
        for (TreeCache c : List.of(topics, configs, consumers, reassigns, elections)) c.start();
        brokers.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        deletes.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        String id = new String(brokers.getCurrentData().get(0).getData());
        say("brokers", brokers.getCurrentData().size(), id.contains("\"host\":\"127.0.0.1\""), id.contains("\"endpoints\":[\"PLAINTEXT://"));
        say("controller", get("/controller").contains("\"brokerid\":" + broker));

        // AdminUtils.createTopic.
        zk.create().creatingParentsIfNeeded().forPath("/config/topics/managed", bytes("{\"version\":1,\"config\":{\"retention.ms\":\"1234567\"}}"));
        zk.create().forPath("/brokers/topics/managed", bytes("{\"version\":1,\"partitions\":{\"0\":[" + broker + "],\"1\":[" + broker + "]}}"));
        until("the leaders of a topic", () -> cached(topics, "/brokers/topics/managed/partitions/0/state").contains("\"leader\":" + broker)
            && cached(topics, "/brokers/topics/managed/partitions/1/state").contains("\"leader\":" + broker)
            && !cached(configs, "/config/topics/managed").isEmpty());
        say("created", topics.getCurrentChildren("/brokers/topics/managed/partitions").keySet(), cached(configs, "/config/topics/managed"));

        // Added partitions: the version that it read guards the write.
        org.apache.zookeeper.data.Stat stat = new org.apache.zookeeper.data.Stat();
        until("a write of what it has read", () -> {
            zk.getData().storingStatIn(stat).forPath("/brokers/topics/managed");
            try {
                zk.setData().withVersion(stat.getVersion()).forPath("/brokers/topics/managed", bytes("{\"version\":1,\"partitions\":{\"0\":[" + broker + "],\"1\":[" + broker + "],\"2\":[" + broker + "]}}"));
                return true;
            } catch (KeeperException.BadVersionException e) { // the controller gave the topic an id meanwhile
                return false;
            }
        });
        until("the leader of an added partition", () -> cached(topics, "/brokers/topics/managed/partitions/2/state").contains("\"leader\":" + broker));
        try {
            zk.setData().withVersion(stat.getVersion()).forPath("/brokers/topics/managed", bytes("{}"));
        } catch (KeeperException.BadVersionException e) {
            say("added", topics.getCurrentChildren("/brokers/topics/managed/partitions").size(), e.code());
        }

        // A topic's configuration, with the notice that brokers watch.
        zk.setData().forPath("/config/topics/managed", bytes("{\"version\":1,\"config\":{\"retention.ms\":\"7654321\"}}"));
        String notice = zk.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/config/changes/config_change_", bytes("{\"version\":2,\"entity_path\":\"topics/managed\"}"));
        until("the cache's config", () -> cached(configs, "/config/topics/managed").contains("7654321"));
        say("config", notice.matches("/config/changes/config_change_\\d{10}"));

        // Preferred leaders and a reassignment: the controller takes the nodes away.
        zk.create().forPath("/admin/preferred_replica_election", bytes("{\"version\":1,\"partitions\":[{\"topic\":\"managed\",\"partition\":0}]}"));
        until("the end of the election", () -> zk.checkExists().forPath("/admin/preferred_replica_election") == null);
        zk.create().forPath("/admin/reassign_partitions", bytes("{\"version\":1,\"partitions\":[{\"topic\":\"managed\",\"partition\":0,\"replicas\":[" + broker + "]}]}"));
        until("the end of the reassignment", () -> zk.checkExists().forPath("/admin/reassign_partitions") == null);
        until("the caches' ends of both", () -> cached(reassigns, "/admin/reassign_partitions").isEmpty() && cached(elections, "/admin/preferred_replica_election").isEmpty());
        say("elected and reassigned");

        // Offsets of a consumer of 0.8: value and time of change.
        zk.create().creatingParentsIfNeeded().forPath("/consumers/g/offsets/managed/0", bytes("41"));
        zk.setData().forPath("/consumers/g/offsets/managed/0", bytes("42"));
        until("the consumers' cache", () -> cached(consumers, "/consumers/g/offsets/managed/0").equals("42"));
        org.apache.zookeeper.data.Stat offset = consumers.getCurrentData("/consumers/g/offsets/managed/0").getStat();
        say("consumer", offset.getVersion(), offset.getMzxid() > offset.getCzxid(), Math.abs(offset.getMtime() - System.currentTimeMillis()) < 60_000);

        // Deletion.
        zk.create().forPath("/admin/delete_topics/managed");
        until("the end of the topic", () -> zk.checkExists().forPath("/brokers/topics/managed") == null && zk.checkExists().forPath("/admin/delete_topics/managed") == null);
        until("the caches' end of it", () -> topics.getCurrentData("/brokers/topics/managed") == null && deletes.getCurrentData().isEmpty() && configs.getCurrentData("/config/topics/managed") == null);
        say("deleted");
        mutex.release();
        zk.close();
    }
}
