// Asks Apache Kafka 3.9.1 what it makes of properties, for the files beside
// this one. Run it with the folder of Kafka's jars on the class path:
//
//   java -cp "$JARS/*" Oracle.java definitions DIR   writes kafka-3.9.1-*.txt
//   java -cp "$JARS/*" Oracle.java properties  <files.in  >properties.txt
//   java -cp "$JARS/*" Oracle.java values      <values.in >values.txt
//   java -cp "$JARS/*" Oracle.java static      <static.in >static.txt
//
// The .in files need not be kept: each output line holds its input.

import java.io.*;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.common.MetadataVersion;

public class Oracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        switch (args[0]) {
            case "definitions": definitions(args[1]); break;
            case "properties": for (String l; (l = in.readLine()) != null; ) out.println(l + "\t" + properties(l)); break;
            case "values": for (String l; (l = in.readLine()) != null; ) out.println(l + "\t" + value(l)); break;
            case "static": for (String l; (l = in.readLine()) != null; ) out.println(l + "\t" + statik(l)); break;
        }
    }

    static String hex(String s) throws Exception {
        return HexFormat.of().formatHex(s.getBytes("UTF-8"));
    }

    // A line is a file in hexadecimal; the answer is its keys and values, each in hexadecimal UTF-8.
    static String properties(String line) throws Exception {
        Properties p = new Properties();
        try {
            p.load(new ByteArrayInputStream(HexFormat.of().parseHex(line)));
        } catch (IllegalArgumentException e) {
            return "malformed";
        }
        StringBuilder b = new StringBuilder();
        for (String k : new TreeSet<>(p.stringPropertyNames()))
            b.append(b.length() == 0 ? "" : " ").append(hex(k)).append("=").append(hex(p.getProperty(k)));
        return b.toString();
    }

    // A line is a type and a text; the answer is what the value is printed as.
    static String value(String line) {
        String[] f = line.split("\t", -1);
        ConfigDef.Type t = ConfigDef.Type.valueOf(f[0]);
        try {
            return "ok\t" + ConfigDef.convertToString(ConfigDef.parseType("k", f[1], t), t);
        } catch (Exception e) {
            return "error\t" + e.getMessage();
        }
    }

    // A line is properties, key=value, separated by a space-semicolon-space; the answer is Kafka's verdict.
    static String statik(String line) {
        Properties p = new Properties();
        p.put("zookeeper.connect", "localhost:2181");
        for (String kv : line.split(" ; ")) {
            int i = kv.indexOf('=');
            if (kv.startsWith("-")) p.remove(kv.substring(1)); else p.put(kv.substring(0, i), kv.substring(i + 1));
        }
        try {
            kafka.server.KafkaConfig c = new kafka.server.KafkaConfig(p, false);
            org.apache.kafka.storage.internals.log.LogConfig.validateBrokerLogConfigValues(c.extractLogConfigMap(), false);
            return "ok";
        } catch (Exception e) {
            return String.valueOf(e.getMessage()).replace('\n', ' ');
        }
    }

    static void dump(String file, Map<String, ConfigDef.ConfigKey> keys, java.util.function.Function<String, String> more) throws Exception {
        try (PrintWriter w = new PrintWriter(file, "UTF-8")) {
            for (ConfigDef.ConfigKey k : new TreeMap<>(keys).values()) {
                String d = k.defaultValue == null || !k.hasDefault() ? "<null>" : ConfigDef.convertToString(k.defaultValue, k.type);
                w.println(String.join("\t", k.name, k.type.toString(), d, String.valueOf(k.validator), k.importance.toString(),
                        k.internalConfig ? "internal" : "public", more.apply(k.name)));
            }
        }
    }

    static void definitions(String dir) throws Exception {
        Map<String, String> modes = kafka.server.DynamicBrokerConfig$.MODULE$.dynamicConfigUpdateModes();
        dump(dir + "/kafka-3.9.1-broker.txt", kafka.server.KafkaConfig$.MODULE$.configDef().configKeys(), n ->
                modes.getOrDefault(n, "read-only") + "\t" + String.join(",", scala.jdk.javaapi.CollectionConverters.asJava(
                        kafka.server.DynamicBrokerConfig$.MODULE$.brokerConfigSynonyms(n, true))));
        dump(dir + "/kafka-3.9.1-broker-dynamic.txt", kafka.server.DynamicConfig.Broker$.MODULE$.configKeys(), n -> "");
        dump(dir + "/kafka-3.9.1-topic.txt", org.apache.kafka.storage.internals.log.LogConfig.configKeys(), n ->
                String.valueOf(org.apache.kafka.server.config.ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.getOrDefault(n, "-")));
        dump(dir + "/kafka-3.9.1-client.txt", kafka.server.DynamicConfig.Client$.MODULE$.configKeys(), n -> "");
        dump(dir + "/kafka-3.9.1-user.txt", kafka.server.DynamicConfig.User$.MODULE$.configKeys(), n -> "");
        dump(dir + "/kafka-3.9.1-ip.txt", kafka.server.DynamicConfig.Ip$.MODULE$.configKeys(), n -> "");
        try (PrintWriter w = new PrintWriter(dir + "/kafka-3.9.1-versions.txt", "UTF-8")) {
            for (MetadataVersion v : MetadataVersion.VERSIONS)
                w.println(v.version() + "\tfetch=" + v.fetchRequestVersion() + "\tlistoffsets=" + v.listOffsetRequestVersion()
                        + "\tepoch=" + v.offsetForLeaderEpochRequestVersion());
            for (String s : "2.4 2.5 2.6 2.7 2.8 3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9 2.9 2.4.1 2.8.2 3.9.1 2.8-IV0 2.8.0-IV1 3.9-IV9 0.10.2.0 0.10 0.10.2 1 1.0 1.0.5 4.0 abc".split(" "))
                try {
                    w.println(s + "\tis\t" + MetadataVersion.fromVersionString(s));
                } catch (Exception e) {
                    w.println(s + "\tis\tnone");
                }
        }
    }
}
