// Package cases holds behaviour that people filed bugs about, in Kafka and in
// its kin: each case is asked of a Barnabas broker and of Apache Kafka 3.9.1 in
// one run, and both must give the right value. Where Kafka itself is wrong or
// poor the case says so and only Barnabas is held to the better one.
//
// Those about groups and transactions stand beside the tests of their kind:
//
//	fencing of transactional producers   test/transactions TestFencing, TestEpochsThatGoBack; with real
//	                                     producers TestANewerProducerFencesTheOlder, TestCopiesAreExact
//	MEMBER_ID_REQUIRED and bad joins     test/groups TestCases; with real clients TestMembersShareARecordStream
//	rebalances that never end            test/groups TestCases; with real clients
//	                                     TestAStalledMemberIsLeftOut, TestGroupsOfManyMembersAndPartitions
//	the bytes of __consumer_offsets      test/groups TestCases; read by Kafka's own programs in
//	                                     TestKafkasFormattersReadCommits, TestCoordinatorMovesBetweenKafkaAndBarnabas
package cases
