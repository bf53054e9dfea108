// Makes sets of each format and codec with MemoryRecordsBuilder of kafka-clients
// 3.9.1. Arguments: the folder to write to.
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.*;

final class Sets {
    static final long TIME = 1700000000000L;

    static byte[] value(Random rnd, int i, boolean large) {
        switch (i % 5) {
            case 0: return null;
            case 1: return new byte[0];
            case 2: return ("value " + i).getBytes();
            case 3: { byte[] b = new byte[rnd.nextInt(300)]; rnd.nextBytes(b); return b; }
            default: {
                StringBuilder s = new StringBuilder();
                int n = large ? 6000 : 20;
                for (int k = 0; k < n; k++) s.append("line ").append(k % 97).append(k % 40 == 0 ? rnd.nextInt(10) : 0).append(';');
                return s.toString().getBytes();
            }
        }
    }

    static byte[] key(int i) {
        return i % 3 == 0 ? null : i % 3 == 1 ? ("key" + i).getBytes() : new byte[0];
    }

    static Header[] headers(int i) {
        Header[] h = new Header[i % 4];
        for (int k = 0; k < h.length; k++)
            h[k] = new RecordHeader("h" + k, k == 1 ? null : k == 2 ? new byte[0] : ("x" + i).getBytes());
        return h;
    }

    public static void main(String[] args) throws Exception {
        for (byte magic = 0; magic <= 2; magic++)
            for (CompressionType type : CompressionType.values())
                for (TimestampType time : new TimestampType[]{TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME}) {
                    if (type == CompressionType.ZSTD && magic < 2 || magic == 0 && time == TimestampType.LOG_APPEND_TIME)
                        continue;
                    String name = "v" + magic + "-" + type.name + (time == TimestampType.CREATE_TIME ? "" : "-append");
                    byte[] set = make(magic, type, time);
                    Files.write(Path.of(args[0], name + ".set"), set);
                    Files.writeString(Path.of(args[0], name + ".txt"),
                        Dump.set(MemoryRecords.readableRecords(ByteBuffer.wrap(set))));
                }
    }

    static byte[] make(byte magic, CompressionType type, TimestampType time) {
        Random rnd = new Random(42);
        ByteBuffer out = ByteBuffer.allocate(1 << 20);
        Compression c = Compression.of(type).build();
        long[] bases = {5, 105, 5000000000L};
        for (int n = 0; n < bases.length; n++) {
            boolean idempotent = magic == 2 && n == 1;
            MemoryRecordsBuilder b = MemoryRecords.builder(ByteBuffer.allocate(1 << 20), magic, c, time, bases[n], TIME + 5000,
                idempotent ? 4711 : -1, (short) (idempotent ? 3 : -1), idempotent ? Integer.MAX_VALUE - 2 : -1,
                idempotent, false, 9);
            boolean large = n == 2 && type != CompressionType.NONE;
            for (int i = 0; i < 10; i++) {
                long t = magic == 0 ? -1 : i == 7 && n == 0 ? -1 : TIME + n * 1000 + (i * 37) % 50;
                byte[] v = value(rnd, i, large);
                if (magic == 2)
                    b.appendWithOffset(bases[n] + i, t, key(i), v, headers(i));
                else
                    b.appendWithOffset(bases[n] + i, t, key(i), v);
            }
            out.put(b.build().buffer());
        }
        if (magic == 2) {
            MemoryRecords marker = MemoryRecords.withEndTransactionMarker(5000000010L, TIME + 7000, 9, 4711, (short) 3,
                new EndTransactionMarker(ControlRecordType.ABORT, 12));
            out.put(marker.buffer());
        }
        out.flip();
        byte[] b = new byte[out.remaining()];
        out.get(b);
        return b;
    }
}
