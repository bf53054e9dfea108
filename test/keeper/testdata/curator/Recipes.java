import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.api.transaction.*;
import org.apache.curator.framework.recipes.atomic.*;
import org.apache.curator.framework.recipes.barriers.*;
import org.apache.curator.framework.recipes.cache.*;
import org.apache.curator.framework.recipes.leader.*;
import org.apache.curator.framework.recipes.locks.*;
import org.apache.curator.framework.recipes.nodes.*;
import org.apache.curator.framework.recipes.queue.*;
import org.apache.curator.framework.recipes.shared.*;
import org.apache.curator.framework.recipes.watch.*;
import org.apache.curator.retry.*;
import org.apache.zookeeper.*;

/** Apache Curator's recipes, each on the server that is the argument: prints what each saw. */
public class Recipes {
    static String server;
    static final List<CuratorFramework> all = new ArrayList<>();
    static final ExecutorService pool = Executors.newCachedThreadPool();

    static CuratorFramework client() throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.newClient(server, 10000, 10000, new RetryOneTime(100));
        c.start();
        if (!c.blockUntilConnected(20, TimeUnit.SECONDS)) throw new Exception("no connection");
        all.add(c);
        return c;
    }

    static void say(String what, Object... values) {
        System.out.println(what + " " + Arrays.toString(values));
    }

    static void until(String what, Callable<Boolean> ok) throws Exception {
        long end = System.nanoTime() + 20_000_000_000L;
        while (!ok.call()) {
            if (System.nanoTime() > end) throw new Exception("waited for: " + what);
            Thread.onSpinWait();
        }
    }

    public static void main(String[] args) throws Exception {
        server = args[0];
        CuratorFramework a = client(), b = client();
        latch(a, b);
        selector(a, b);
        locks(a, b);
        barriers(a, b);
        queues(a);
        counters(a, b);
        caches(a, b);
        nodes(a, b);
        transactions(a);
        for (CuratorFramework c : all) c.close();
        pool.shutdownNow();
        System.out.println("done");
        System.exit(0);
    }

    static void latch(CuratorFramework a, CuratorFramework b) throws Exception {
        LeaderLatch one = new LeaderLatch(a, "/latch", "one"), two = new LeaderLatch(b, "/latch", "two");
        one.start();
        one.await();
        two.start();
        until("two takes part", () -> one.getParticipants().size() == 2);
        say("latch", one.hasLeadership(), two.hasLeadership(), one.getLeader().getId());
        one.close();
        two.await();
        say("latch after", two.hasLeadership(), two.getLeader().getId());
        two.close();
    }

    static void selector(CuratorFramework a, CuratorFramework b) throws Exception {
        AtomicInteger together = new AtomicInteger(), most = new AtomicInteger(), turns = new AtomicInteger();
        CountDownLatch enough = new CountDownLatch(6);
        List<LeaderSelector> selectors = new ArrayList<>();
        for (CuratorFramework c : List.of(a, b, client())) {
            LeaderSelector s = new LeaderSelector(c, "/selector", new LeaderSelectorListenerAdapter() {
                public void takeLeadership(CuratorFramework x) {
                    most.accumulateAndGet(together.incrementAndGet(), Math::max);
                    turns.incrementAndGet();
                    together.decrementAndGet();
                    enough.countDown();
                }
            });
            s.autoRequeue();
            s.start();
            selectors.add(s);
        }
        say("selector", enough.await(20, TimeUnit.SECONDS), most.get());
        for (LeaderSelector s : selectors) s.close();
    }

    static void locks(CuratorFramework a, CuratorFramework b) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(a, "/mutex"), other = new InterProcessMutex(b, "/mutex");
        mutex.acquire();
        mutex.acquire();
        say("mutex", other.acquire(200, TimeUnit.MILLISECONDS), mutex.isAcquiredInThisProcess());
        mutex.release();
        mutex.release();
        say("mutex after", other.acquire(10, TimeUnit.SECONDS));
        other.release();
        InterProcessSemaphoreMutex sm = new InterProcessSemaphoreMutex(a, "/sm"), sm2 = new InterProcessSemaphoreMutex(b, "/sm"); // CMAK's
        sm.acquire();
        say("semaphore mutex", sm2.acquire(200, TimeUnit.MILLISECONDS));
        sm.release();
        say("semaphore mutex after", sm2.acquire(10, TimeUnit.SECONDS));
        sm2.release();
        InterProcessReadWriteLock rw = new InterProcessReadWriteLock(a, "/rw"), rw2 = new InterProcessReadWriteLock(b, "/rw");
        rw.readLock().acquire();
        say("read-write", rw2.readLock().acquire(10, TimeUnit.SECONDS), rw2.writeLock().acquire(200, TimeUnit.MILLISECONDS));
        rw.readLock().release();
        rw2.readLock().release();
        say("read-write after", rw2.writeLock().acquire(10, TimeUnit.SECONDS));
        rw2.writeLock().release();
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(a, "/semaphore", 2);
        Lease first = semaphore.acquire(), second = semaphore.acquire();
        say("semaphore", semaphore.acquire(200, TimeUnit.MILLISECONDS) == null, semaphore.getParticipantNodes().size());
        semaphore.returnLease(first);
        Lease third = semaphore.acquire(10, TimeUnit.SECONDS);
        say("semaphore after", third != null);
        semaphore.returnAll(List.of(second, third));
        InterProcessMultiLock multi = new InterProcessMultiLock(a, List.of("/multi/1", "/multi/2"));
        say("multi lock", multi.acquire(10, TimeUnit.SECONDS));
        multi.release();
    }

    static void barriers(CuratorFramework a, CuratorFramework b) throws Exception {
        DistributedBarrier barrier = new DistributedBarrier(a, "/barrier");
        barrier.setBarrier();
        Future<Boolean> waits = pool.submit(() -> new DistributedBarrier(b, "/barrier").waitOnBarrier(20, TimeUnit.SECONDS));
        say("barrier", new DistributedBarrier(b, "/barrier").waitOnBarrier(200, TimeUnit.MILLISECONDS));
        barrier.removeBarrier();
        say("barrier after", waits.get());
        DistributedDoubleBarrier d1 = new DistributedDoubleBarrier(a, "/double", 2), d2 = new DistributedDoubleBarrier(b, "/double", 2);
        Future<Boolean> entered = pool.submit(() -> d2.enter(20, TimeUnit.SECONDS));
        say("double barrier", d1.enter(20, TimeUnit.SECONDS), entered.get());
        Future<Boolean> left = pool.submit(() -> d2.leave(20, TimeUnit.SECONDS));
        say("double barrier after", d1.leave(20, TimeUnit.SECONDS), left.get());
    }

    static void queues(CuratorFramework a) throws Exception {
        SimpleDistributedQueue simple = new SimpleDistributedQueue(a, "/simplequeue");
        for (int i = 0; i < 5; i++) simple.offer(("s" + i).getBytes());
        say("simple queue", new String(simple.peek()), new String(simple.take()), new String(simple.poll()), new String(simple.remove()));
        BlockingQueue<String> got = new LinkedBlockingQueue<>();
        QueueConsumer<String> consumer = new QueueConsumer<String>() {
            public void consumeMessage(String m) { got.add(m); }
            public void stateChanged(CuratorFramework c, org.apache.curator.framework.state.ConnectionState s) {}
        };
        QueueSerializer<String> text = new QueueSerializer<String>() {
            public byte[] serialize(String s) { return s.getBytes(); }
            public String deserialize(byte[] x) { return new String(x); }
        };
        DistributedQueue<String> q = QueueBuilder.builder(a, consumer, text, "/queue").lockPath("/queuelock").buildQueue();
        q.start();
        for (int i = 0; i < 20; i++) q.put("q" + i);
        List<String> seen = new ArrayList<>();
        while (seen.size() < 20) seen.add(Objects.requireNonNull(got.poll(20, TimeUnit.SECONDS)));
        Collections.sort(seen);
        say("queue", seen.toArray());
        q.close();
        DistributedPriorityQueue<String> p = QueueBuilder.builder(a, consumer, text, "/priority").buildPriorityQueue(1);
        p.start();
        for (int i = 0; i < 5; i++) p.put("p" + i, 5 - i);
        seen.clear();
        while (seen.size() < 5) seen.add(Objects.requireNonNull(got.poll(20, TimeUnit.SECONDS)));
        Collections.sort(seen);
        say("priority queue", seen.toArray());
        p.close();
    }

    static void counters(CuratorFramework a, CuratorFramework b) throws Exception {
        SharedCount one = new SharedCount(a, "/count", 5), two = new SharedCount(b, "/count", 5);
        one.start();
        two.start();
        one.setCount(7);
        until("the count", () -> two.getCount() == 7);
        say("shared count", one.trySetCount(one.getVersionedValue(), 8), two.getCount() >= 7);
        one.close();
        two.close();
        DistributedAtomicLong x = new DistributedAtomicLong(a, "/atomic", new RetryNTimes(100, 10)), y = new DistributedAtomicLong(b, "/atomic", new RetryNTimes(100, 10));
        Future<?> adds = pool.submit(() -> { for (int i = 0; i < 20; i++) if (!x.increment().succeeded()) throw new Exception("no"); return null; });
        for (int i = 0; i < 20; i++) if (!y.increment().succeeded()) throw new Exception("no");
        adds.get();
        say("atomic long", x.get().postValue(), y.compareAndSet(40L, 50L).succeeded(), x.get().postValue());
    }

    static void caches(CuratorFramework a, CuratorFramework b) throws Exception {
        PathChildrenCache children = new PathChildrenCache(a, "/cached", true); // CMAK's
        children.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        TreeCache tree = new TreeCache(a, "/cached"); // CMAK's
        tree.start();
        NodeCache node = new NodeCache(a, "/cached/n");
        node.start(true);
        CuratorCache cache = CuratorCache.build(client(), "/cached"); // ZooKeeper 3.8 has one watch of a client on a path: its own client
        cache.start();
        b.create().creatingParentsIfNeeded().forPath("/cached/n", "1".getBytes());
        b.create().creatingParentsIfNeeded().forPath("/cached/m/k", "2".getBytes());
        b.setData().forPath("/cached/n", "3".getBytes());
        until("the caches", () -> children.getCurrentData().size() == 2 && node.getCurrentData() != null && new String(node.getCurrentData().getData()).equals("3")
            && tree.getCurrentData("/cached/m/k") != null && new String(tree.getCurrentData("/cached/n").getData()).equals("3")
            && cache.get("/cached/m/k").isPresent() && cache.get("/cached/n").map(d -> new String(d.getData()).equals("3")).orElse(false));
        b.delete().deletingChildrenIfNeeded().forPath("/cached/m");
        until("the caches forget", () -> children.getCurrentData().size() == 1 && tree.getCurrentData("/cached/m/k") == null && !cache.get("/cached/m/k").isPresent() && !cache.get("/cached/m").isPresent());
        say("caches", children.getCurrentData().get(0).getPath(), cache.size());
        children.close();
        tree.close();
        node.close();
        cache.close();
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        PersistentWatcher watcher = new PersistentWatcher(a, "/watched", true);
        watcher.start();
        watcher.getListenable().addListener(e -> { if (e.getPath() != null) events.add(e.getType() + " " + e.getPath()); });
        CountDownLatch set = new CountDownLatch(1);
        a.sync().inBackground((c, e) -> set.countDown()).forPath("/");
        set.await();
        b.create().creatingParentsIfNeeded().forPath("/watched/x");
        b.setData().forPath("/watched/x", new byte[1]);
        b.delete().forPath("/watched/x");
        List<String> seen = new ArrayList<>();
        while (seen.size() < 4) seen.add(Objects.requireNonNull(events.poll(20, TimeUnit.SECONDS)));
        say("persistent watcher", seen.toArray());
        watcher.close();
    }

    static void nodes(CuratorFramework a, CuratorFramework b) throws Exception {
        CuratorFramework c = client();
        PersistentNode node = new PersistentNode(c, CreateMode.EPHEMERAL, false, "/persistent", "x".getBytes());
        node.start();
        say("persistent node", node.waitForInitialCreate(20, TimeUnit.SECONDS));
        b.delete().forPath("/persistent");
        until("it is back", () -> b.checkExists().forPath("/persistent") != null);
        node.close();
        PersistentTtlNode ttl = new PersistentTtlNode(c, "/ttl", 60_000, "t".getBytes());
        ttl.start();
        say("ttl node", ttl.waitForInitialCreate(20, TimeUnit.SECONDS));
        ttl.close();
        GroupMember member = new GroupMember(a, "/group", "a", "1".getBytes()), two = new GroupMember(b, "/group", "b", "2".getBytes());
        member.start();
        two.start();
        until("the group", () -> member.getCurrentMembers().size() == 2);
        say("group", new TreeSet<>(member.getCurrentMembers().keySet()));
        two.close();
        until("the group shrinks", () -> member.getCurrentMembers().size() == 1);
        member.close();
        a.create().withMode(CreateMode.CONTAINER).forPath("/container");
        say("container", a.checkExists().forPath("/container").getEphemeralOwner());
    }

    static void transactions(CuratorFramework a) throws Exception {
        a.create().forPath("/transactions"); // where nothing of the recipes before comes late and counts
        List<CuratorTransactionResult> r = a.transaction().forOperations(
            a.transactionOp().create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/transactions/t-", "1".getBytes()),
            a.transactionOp().setData().forPath("/container", "2".getBytes()),
            a.transactionOp().check().withVersion(1).forPath("/container"),
            a.transactionOp().delete().forPath("/container"));
        say("transaction", r.size(), r.get(0).getResultPath(), r.get(1).getResultStat().getVersion());
        try {
            a.transaction().forOperations(a.transactionOp().create().forPath("/never"), a.transactionOp().delete().forPath("/none"));
            say("transaction that fails", "went through");
        } catch (KeeperException e) {
            say("transaction that fails", e.code(), a.checkExists().forPath("/never") == null);
        }
    }
}
