"""kazoo's recipes, each on the server that is the argument: prints what each saw."""
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoAuthError
from kazoo.recipe.cache import TreeCache
from kazoo.security import make_digest_acl

server = sys.argv[1]


def client(**options):
    c = KazooClient(hosts=server, timeout=10, **options)
    c.start(timeout=20)
    return c


def wait(what, ok):
    event, left = threading.Event(), 2000
    while not ok():
        left -= 1
        if not left:
            raise SystemExit("waited for: " + what)
        event.wait(0.01)


a, b = client(), client()

lock, other = a.Lock("/lock", "a"), b.Lock("/lock", "b")
lock.acquire()
print("lock", other.acquire(blocking=False), lock.contenders())
lock.release()
print("lock after", other.acquire(timeout=10))
other.release()

reads, writes = a.ReadLock("/rw", "a"), b.WriteLock("/rw", "b")
reads.acquire()
print("read-write lock", writes.acquire(blocking=False))
reads.release()
print("read-write lock after", writes.acquire(timeout=10))
writes.release()

semaphore = a.Semaphore("/semaphore", "a", max_leases=1)
semaphore.acquire()
print("semaphore", b.Semaphore("/semaphore", "b", max_leases=1).acquire(blocking=False), semaphore.lease_holders())
semaphore.release()

leader = threading.Event()
election = a.Election("/election", "a")
threading.Thread(target=election.run, args=(leader.set,), daemon=True).start()
print("election", leader.wait(20))

barrier = a.Barrier("/barrier")
barrier.create()
print("barrier", b.Barrier("/barrier").wait(0.2))
barrier.remove()
print("barrier after", b.Barrier("/barrier").wait(10))

entered = []
double = [c.DoubleBarrier("/double", 2) for c in (a, b)]
threads = [threading.Thread(target=lambda d=d: (d.enter(), entered.append(1), d.leave())) for d in double]
[t.start() for t in threads]
[t.join(20) for t in threads]
print("double barrier", len(entered))

queue = a.Queue("/queue")
for value in (b"1", b"2", b"3"):
    queue.put(value)
print("queue", len(queue), [queue.get() for _ in range(3)])
locking = a.LockingQueue("/locking")
locking.put_all([b"x", b"y"])
print("locking queue", locking.get(10), locking.consume(), len(locking))

counter = a.Counter("/counter")
threads = [threading.Thread(target=lambda c=c: [c.Counter("/counter").__iadd__(1) for _ in range(20)]) for c in (a, b)]
[t.start() for t in threads]
[t.join(60) for t in threads]
print("counter", counter.value)

party = a.Party("/party", "a")
party.join()
b.Party("/party", "b").join()
print("party", len(party), sorted(b.Party("/party")))

seen, children = [], []
a.create("/watched", b"0")
a.DataWatch("/watched", lambda data, stat: seen.append(data))
a.ChildrenWatch("/watched", lambda names: children.append(sorted(names)))
b.set("/watched", b"1")
wait("the data watch", lambda: b"1" in seen)
b.create("/watched/x")
wait("the children watch", lambda: ["x"] in children)
print("watches", seen[-1], children[-1])

cache = TreeCache(a, "/watched")
cache.start()
wait("the tree cache", lambda: cache.get_data("/watched/x") is not None)
b.set("/watched/x", b"2")
wait("the tree cache's change", lambda: cache.get_data("/watched/x").data == b"2")
print("tree cache", cache.get_data("/watched/x").data)
cache.close()

t = a.transaction()
t.create("/t", b"1")
t.check("/t", 0)
t.set_data("/t", b"2")
t.delete("/none")
print("transaction", [type(r).__name__ for r in t.commit()], a.exists("/t"))

try:
    a.set("/watched", b"", version=9)
except BadVersionError:
    print("bad version")
mine = client(auth_data=[("digest", "u:p")])
mine.create("/mine", b"", acl=[make_digest_acl("u", "p", all=True)])
try:
    a.get("/mine")
except NoAuthError:
    print("no auth")
print("acl", [(x.perms, x.id.scheme, x.id.id) for x in mine.get_acls("/mine")[0]])

chroot = KazooClient(hosts=server + "/watched", timeout=10)
chroot.start()
print("chroot", chroot.get_children("/"))

print("partitioner", end=" ")
p = a.SetPartitioner("/partition", set=(1, 2, 3))
p.wait_for_acquire(20)
print(p.acquired, sorted(p))
p.finish()
print("words", a.command(b"ruok"), a.server_version())
for c in (a, b, mine, chroot):
    c.stop()
    c.close()
print("done")
