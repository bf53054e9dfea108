#!/bin/sh
# Makes the fixtures of internal/record/testdata with Kafka's own classes. Needs
# a JDK (17) and, in $JARS (default ~/.cache/kafka-jars), the folders 0.8.2.2,
# 2.8.2 and 3.9.1 with the jars of kafka_2.x of that version. The output is the
# same each time, but for the sizes that codec libraries of other versions make.
#
#   make.sh            writes ../sets and ../validate (SEED: other cases)
#   make.sh read DIR   prints, beside each set in DIR that Go made, what Java
#                      reads in it (test/record does that)
set -e
cd "$(dirname "$0")"
JARS=${JARS:-$HOME/.cache/kafka-jars}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
new="$JARS/3.9.1/*" mid="$JARS/2.8.2/*" old="$JARS/0.8.2.2/*"
mkdir "$out/new" "$out/mid" "$out/old"
javac -d "$out/old" -cp "$old" Old.java
javac -d "$out/mid" -cp "$mid" Dump.java Down.java
javac -d "$out/new" -cp "$new" Dump.java Sets.java Read.java Validate.java
quiet=-Dorg.slf4j.simpleLogger.defaultLogLevel=off
if [ "$1" = read ]; then
	java $quiet -cp "$out/new:$new" Read "$2"
	[ -d "$2/old" ] && java $quiet -cp "$out/old:$old" Old read "$2/old"
	exit 0
fi
mkdir -p ../sets ../validate
rm -f ../sets/* ../validate/*
java $quiet -cp "$out/old:$old" Old write ../sets
java $quiet -cp "$out/new:$new" Sets ../sets
java $quiet -cp "$out/mid:$mid" Down ../sets
java $quiet -cp "$out/new:$new" Validate ../validate/cases.txt 760 ${SEED:-20240607}
