// Draws random sets, breaks most of them, and writes what a Kafka 3.9.1 leader
// makes of each: the error code, or how the stored batch reads. One case a line:
//
//   mutation version compacted type before after codec maxBytes input code records maxTimestamp text
//
// The checks are those of ProduceRequest.validateRecords, of the loop over
// batches in UnifiedLog (written out below: it is private) and of LogValidator.
import java.io.*;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.*;

final class Validate {
    static final long NOW = 1700000000000L;
    static Random rnd;

    static final String[] MUTATIONS = {"none", "none", "none", "none", "crc", "count+1", "count-1", "count0", "countneg",
        "delta", "deltaneg", "twice", "cut", "tail", "empty", "base", "control", "transactional", "sequence", "seqneg",
        "appendbit", "maxts", "badlength", "smalllength", "magic3", "garbage", "codec", "extra", "short", "recordlength",
        "keylength", "vallength", "headercount", "mixed", "nested", "innercrc", "wrapperzero", "wrapperlow"};

    // Arguments: the file to write, how many cases, the seed.
    public static void main(String[] args) throws Exception {
        rnd = new Random(Long.parseLong(args[2]));
        PrintStream out = new PrintStream(new FileOutputStream(args[0]), false, "UTF-8");
        for (int n = 0; n < Integer.parseInt(args[1]); n++)
            line(out, MUTATIONS[n % MUTATIONS.length]);
        out.close();
    }

    static void line(PrintStream out, String mutation) {
        byte magic = (byte) rnd.nextInt(3);
        if (rnd.nextInt(2) == 0)
            magic = 2;
        CompressionType source = type(magic == 2 ? 5 : 4);
        short version = (short) (magic == 2 ? 3 + rnd.nextInt(9) : rnd.nextInt(3));
        if (rnd.nextInt(10) == 0)
            version = (short) rnd.nextInt(12);
        boolean compacted = rnd.nextInt(4) == 0;
        TimestampType time = rnd.nextInt(4) == 0 ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        long before = rnd.nextInt(3) == 0 ? 1000 : Long.MAX_VALUE;
        long after = rnd.nextInt(3) == 0 ? 500 : 3600000;
        CompressionType target = rnd.nextInt(2) == 0 ? null : type(5);
        int max = rnd.nextInt(10) == 0 ? 150 : 1 << 20;

        byte[] input = mutate(mutation, magic, source, make(magic, source, compacted));
        String result;
        try {
            result = run(input.clone(), version, compacted, time, before, after, target, max);
        } catch (org.apache.kafka.storage.internals.log.RecordValidationException e) {
            StringBuilder indexes = new StringBuilder();
            for (org.apache.kafka.common.requests.ProduceResponse.RecordError r : e.recordErrors())
                indexes.append(indexes.length() == 0 ? "records:" : ",").append(r.batchIndex);
            result = Errors.forException(e.invalidException()).code() + " 0 -1 " + indexes;
        } catch (Throwable e) {
            result = Errors.forException(e).code() + " 0 -1 " + e.getClass().getSimpleName();
        }
        out.println(mutation + " " + version + " " + compacted + " " + time.name + " " + before + " " + after + " "
            + (target == null ? "producer" : target.name) + " " + max + " x" + Dump.hex(input) + " " + result);
    }

    static CompressionType type(int n) {
        return CompressionType.forId(rnd.nextInt(3) == 0 ? 0 : rnd.nextInt(n));
    }

    static byte[] make(byte magic, CompressionType source, boolean compacted) {
        long pid = magic == 2 && rnd.nextInt(3) == 0 ? 77 : -1;
        MemoryRecordsBuilder b = MemoryRecords.builder(ByteBuffer.allocate(4096), magic, Compression.of(source).build(),
            TimestampType.CREATE_TIME, 0, -1, pid, (short) (pid < 0 ? -1 : 2), pid < 0 ? -1 : 10, pid >= 0 && rnd.nextBoolean(),
            false, -1);
        int count = 1 + rnd.nextInt(6);
        boolean nullKeys = rnd.nextInt(3) == 0;
        boolean badTimes = rnd.nextInt(3) == 0;
        for (int i = 0; i < count; i++) {
            long t = NOW - rnd.nextInt(900);
            if (badTimes && rnd.nextInt(2) == 0)
                t = rnd.nextInt(3) == 0 ? -1 : NOW - 5000 + rnd.nextInt(10000);
            byte[] key = (nullKeys || !compacted) && rnd.nextInt(2) == 0 ? null : ("k" + i).getBytes();
            byte[] value = rnd.nextInt(4) == 0 ? null : "some value some value some".substring(rnd.nextInt(20)).getBytes();
            if (magic == 2 && rnd.nextInt(3) == 0)
                b.appendWithOffset(i, t, key, value, new Header[]{new RecordHeader("h", "v".getBytes()), new RecordHeader("n", (byte[]) null)});
            else
                b.appendWithOffset(i, magic == 0 ? -1 : t, key, value);
        }
        return bytes(b.build());
    }

    static byte[] bytes(MemoryRecords m) {
        ByteBuffer p = m.buffer().duplicate();
        byte[] b = new byte[p.remaining()];
        p.get(b);
        return b;
    }

    static byte[] mutate(String how, byte magic, CompressionType source, byte[] in) {
        ByteBuffer b = ByteBuffer.wrap(in);
        int end = 12 + b.getInt(8);
        switch (how) {
            case "crc": b.put(magic == 2 ? 17 : 12, (byte) (b.get(magic == 2 ? 17 : 12) ^ 1)); return in;
            case "twice": { byte[] t = Arrays.copyOf(in, 2 * in.length); System.arraycopy(in, 0, t, in.length, in.length); return t; }
            case "cut": return Arrays.copyOf(in, rnd.nextInt(in.length));
            case "tail": { byte[] t = Arrays.copyOf(in, in.length + 30); System.arraycopy(in, 0, t, in.length, Math.min(30, in.length)); return t; }
            case "empty": return new byte[0];
            case "base": b.putLong(0, 7); return in;
            case "badlength": b.putInt(8, Integer.MAX_VALUE - rnd.nextInt(20)); return in;
            case "smalllength": b.putInt(8, rnd.nextInt(60) - 10); return in;
            case "magic3": b.put(16, (byte) (3 + rnd.nextInt(200))); return in;
            case "mixed": {
                byte[] other = make((byte) (magic == 0 ? 1 : 0), CompressionType.NONE, false);
                byte[] t = Arrays.copyOf(in, in.length + other.length);
                System.arraycopy(other, 0, t, in.length, other.length);
                return t;
            }
            case "nested": if (magic < 2) return wrap(magic, wrap(magic, in, 0, 1), 0, 1); return in;
            case "innercrc": if (magic < 2) { b.put(12, (byte) (b.get(12) ^ 1)); return wrap(magic, in, 0, 1); } return in;
            case "wrapperzero": if (magic < 2 && source != CompressionType.NONE) { b.putLong(0, 0); } return in;
            case "wrapperlow": if (magic == 1) { b.putLong(0, 3); return wrap(magic, in, 1, 2); } return in;
        }
        if (magic < 2) {
            switch (how) {
                case "appendbit": b.put(17, (byte) (b.get(17) | 8)); break;
                case "codec": b.put(17, (byte) (b.get(17) | 7)); break;
                case "keylength": b.putInt(magic == 0 ? 18 : 26, 1000); break;
                case "garbage": if (source != CompressionType.NONE) for (int i = end - 8; i < end; i++) b.put(i, (byte) rnd.nextInt()); break;
                default: return in;
            }
            java.util.zip.CRC32 c = new java.util.zip.CRC32();
            c.update(in, 16, end - 16);
            b.putInt(12, (int) c.getValue());
            return in;
        }
        boolean plain = source == CompressionType.NONE;
        switch (how) {
            case "count+1": b.putInt(57, b.getInt(57) + 1); b.putInt(23, b.getInt(23) + 1); break;
            case "count-1": b.putInt(57, b.getInt(57) - 1); b.putInt(23, b.getInt(23) - 1); break;
            case "count0": b.putInt(57, 0); break;
            case "countneg": b.putInt(57, -1); b.putInt(23, -2); break;
            case "delta": b.putInt(23, 5 + b.getInt(23)); break;
            case "deltaneg": b.putInt(23, -1); break;
            case "control": b.putShort(21, (short) (b.getShort(21) | 32)); break;
            case "transactional": b.putShort(21, (short) (b.getShort(21) | 16)); break;
            case "sequence": b.putLong(43, 5); b.putInt(53, -1); break;
            case "seqneg": b.putLong(43, 5); b.putInt(53, -3); break;
            case "appendbit": b.putShort(21, (short) (b.getShort(21) | 8)); break;
            case "maxts": b.putLong(35, rnd.nextInt(2) == 0 ? -1 : NOW + 99); break;
            case "codec": b.putShort(21, (short) (b.getShort(21) | 7)); break;
            case "garbage": if (!plain) for (int i = Math.max(61, end - 8); i < end; i++) b.put(i, (byte) rnd.nextInt()); break;
            case "extra": if (plain) { in = Arrays.copyOf(in, in.length + 3); b = ByteBuffer.wrap(in); b.putInt(8, in.length - 12); end = in.length; } break;
            case "short": in = Arrays.copyOf(in, in.length - 1); b = ByteBuffer.wrap(in); b.putInt(8, in.length - 12); end = in.length; break;
            case "recordlength": if (plain) b.put(61, (byte) (b.get(61) + 2)); break;
            case "keylength": if (plain && (b.get(64) & 0x80) == 0) b.put(65, (byte) 0x7e); break;
            case "vallength": if (plain && (b.get(64) & 0x80) == 0 && b.get(65) == 1) b.put(66, (byte) 0x7e); break;
            case "headercount": if (plain && b.get(end - 1) == 0) b.put(end - 1, (byte) (rnd.nextBoolean() ? 2 : 1)); break;
        }
        int crc = (int) Crc32C.compute(in, 21, end - 21);
        b.putInt(17, crc);
        return in;
    }

    static byte[] wrap(byte magic, byte[] set, long offset, int codec) {
        try {
            ByteArrayOutputStream gz = new ByteArrayOutputStream();
            try (OutputStream o = new java.util.zip.GZIPOutputStream(gz)) { o.write(set); }
            byte[] v = gz.toByteArray();
            ByteBuffer b = ByteBuffer.allocate((magic == 0 ? 26 : 34) + v.length);
            b.putLong(offset).putInt(b.capacity() - 12).putInt(0).put(magic).put((byte) 1);
            if (magic == 1) b.putLong(NOW);
            b.putInt(-1).putInt(v.length).put(v);
            java.util.zip.CRC32 c = new java.util.zip.CRC32();
            c.update(b.array(), 16, b.capacity() - 16);
            b.putInt(12, (int) c.getValue());
            return b.array();
        } catch (IOException e) {
            throw new RuntimeException(e);
        }
    }

    static String run(byte[] input, short version, boolean compacted, TimestampType time, long before, long after,
                      CompressionType target, int max) {
        MemoryRecords set = MemoryRecords.readableRecords(ByteBuffer.wrap(input));
        ProduceRequest.validateRecords(version, set);
        CompressionType source = CompressionType.NONE;
        int valid = 0;
        for (MutableRecordBatch b : set.batches()) {
            if (b.magic() >= 2 && b.baseOffset() != 0)
                throw new InvalidRecordException("base offset");
            if (b.sizeInBytes() > max)
                throw new RecordTooLargeException("size");
            if (!b.isValid())
                throw new CorruptRecordException("crc");
            valid += b.sizeInBytes();
            if (b.compressionType() != CompressionType.NONE)
                source = b.compressionType();
        }
        if (valid == 0)
            return "0 0 -1 ";
        ByteBuffer whole = ByteBuffer.wrap(input);
        whole.limit(valid);
        set = MemoryRecords.readableRecords(whole);
        LogValidator v = new LogValidator(set, new TopicPartition("t", 0), fixed(), source,
            Compression.of(target == null ? source : target).build(), compacted, (byte) 2, time, before, after, 7,
            AppendOrigin.CLIENT, MetadataVersion.latestProduction());
        LogValidator.ValidationResult r = v.validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(1000), new NoMetrics(),
            BufferSupplier.NO_CACHING);
        long records = 0;
        for (RecordBatch b : r.validatedRecords.batches()) {
            if (r.messageSizeMaybeChanged && b.sizeInBytes() > max)
                throw new RecordTooLargeException("size after");
            records += b.countOrNull();
        }
        return "0 " + records + " " + r.maxTimestampMs + " " + Dump.set(r.validatedRecords).replace('\n', '|').replace(' ', '_');
    }

    static Time fixed() {
        return (Time) java.lang.reflect.Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[]{Time.class},
            (proxy, method, args) -> method.getReturnType() == long.class
                ? (Object) (method.getName().equals("milliseconds") ? NOW : NOW * 1000000) : null);
    }

    static final class NoMetrics implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() {}
        public void recordInvalidOffset() {}
        public void recordInvalidSequence() {}
        public void recordInvalidChecksums() {}
        public void recordNoKeyCompactedTopic() {}
    }
}
